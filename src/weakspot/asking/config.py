"""`weakspot.yaml`: what to examine, on which data, and what to ask."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    PrivateAttr,
    ValidationError,
    field_validator,
)
from pydantic_core import PydanticCustomError

from weakspot.core.errors import ConfigError
from weakspot.core.execution_options import ExecutionOptions, execution_fields
from weakspot.core.options import OptionError, described, fits, nearest, refuse_unknown, shortened
from weakspot.core.tasks import Scores, Task
from weakspot.data.framing import Interpolation
from weakspot.yaml_file import Places, parse_yaml, read_yaml

Kind = Literal["folder", "zip", "csv", "npz", "npy", "idx", "nifti", "function"]
_SPLIT = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
_SHOWN = 5


class Entry(BaseModel):
    """A part of the file; a key that is not known is refused, and so is a value of another kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _typed(cls, value: Any, info: Any) -> Any:
        """Numbers, text and lists are what they are: "1" is no number, and 1 no truth value."""
        wanted = cls.model_fields[info.field_name].annotation
        if not _holds_entries(wanted) and not fits(value, wanted):
            raise PydanticCustomError("kind", "expected {wanted}{hint}", _kind_words(value, wanted))
        return value


def _holds_entries(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, Entry | ExecutionOptions):
        return True
    return any(map(_holds_entries, get_args(annotation)))


def _kind_words(value: Any, wanted: Any) -> dict[str, str]:
    choices = [part for part in get_args(wanted) if isinstance(part, str)]
    hint = nearest(value, choices).strip() if isinstance(value, str) else ""
    return {"wanted": described(wanted), "hint": f"; {hint}" if hint else ""}


class NormaliseEntry(Entry):
    """Pre-processing that a few numbers describe; see `weakspot.models.Normalise`."""

    scale: float = 1.0
    mean: float | list[float] = 0.0
    std: float | list[float] = 1.0
    bgr: bool = False
    channels_last: bool = False


def _preprocess(value: Any) -> Any:
    if isinstance(value, Mapping | str | Entry) or value is None:
        return value
    raise PydanticCustomError("kind", "expected module:function, or a mapping such as {mean: 0.5, std: 0.5}")


class SubjectEntry(Entry):
    """The model under test."""

    model: str
    """`module:factory`: a class or function that gives the model; or a file: `.pt2` or `.onnx`."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments for the factory, or for reading the file."""
    weights: str | list[str] | None = None
    """A safetensors file, or a state dict: `.pt`, `.pth`, `.th`, `.tar`, `.bin`, `.ckpt`; several make an ensemble."""
    weights_entry: str | None = None
    """Which part of a checkpoint holds the weights."""
    task: Task = "classification"
    classes: int | str | list[str] | None = None
    """Names, how many, or a text file with one name per line."""
    scores: Scores | None = None
    bounds: list[float] | None = None
    output: int | str | None = None
    preprocess: Annotated[NormaliseEntry | str | None, BeforeValidator(_preprocess)] = None
    """`module:function`, or the numbers of a normalisation."""
    device: str = "auto"
    cuda_graphs: bool | None = None
    precision: Literal["float32", "bf16"] = "float32"
    compile: bool = False
    channels_last: bool = False
    window: list[int] | None = None
    """The size of a window that slides over images too large for one pass."""
    window_overlap: float = 0.5
    box: list[int] | None = None
    """The size that volumes are cropped or padded to about their centre, undone for the segmentation."""
    axes: Literal["zyx", "xyz"] = "zyx"
    """Order of the spatial axes that the network was trained on; MONAI reads volumes as x, y, z."""
    fingerprint: str | None = None
    """Name and version of a function that has no weights to be told by."""

    @field_validator("bounds")
    @classmethod
    def _two(cls, value: Any) -> Any:
        if value is not None and (len(value) != 2 or not value[0] < value[1]):
            raise PydanticCustomError("kind", "expected two numbers, the smallest and the largest value")
        return value


class DataEntry(Entry):
    """One split."""

    path: str
    """A folder, a file, or `module:function`; with `attack`, another split."""
    attack: str | None = None
    """Which attack to make on that split; `arguments` are its options."""
    kind: Kind | None = None
    """What it is; by default told by how the path ends."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments for the function, or options of the attack."""
    inputs: str | None = None
    """npz: the array's name; function: the key of the input in samples that are mappings."""
    targets: str | list[str] | None = None
    """npz: the array's name; npy and idx: the file; csv: the column or columns; function: the key of the target."""
    channels: Literal["first", "last", "none"] | None = None
    mode: Literal["RGB", "L"] | None = None
    size: list[int] | None = None
    shorter_side: int | None = None
    """To which images are resized in proportion, before they are cropped."""
    crop: list[int] | None = None
    """Height and width of the middle that is kept."""
    interpolation: Interpolation | None = None
    folder: str | None = None
    """zip: where in the archive the images lie."""
    root: str | None = None
    """csv: where relative paths start."""
    path_column: str | None = None
    id_column: str | None = None
    separator: str | None = None
    delimiter: str | None = None
    spacing: list[float] | None = None
    """nifti: millimetres along z, y, x to resample to."""
    orientation: Literal["file", "RAS"] | None = None
    normalise: Literal["none", "volume", "nonzero"] | None = None
    sequences: list[int] | None = None
    """nifti: which ones, by the number in the file name."""
    cases: str | list[str] | None = None
    """nifti: which ones; or a text file with one per line."""
    follow_links: bool = False
    """folder, nifti: whether links may lead out of the folder."""
    metadata: str | None = None
    """A CSV, Parquet or npz file with a row per sample, joined by its column `metadata_id`."""
    metadata_id: str | None = None
    group: str | None = None
    """The column of the metadata that says which samples belong together: frames of a film, slices of a patient."""

    @field_validator("size", "crop")
    @classmethod
    def _height_and_width(cls, value: Any) -> Any:
        if value is not None and (len(value) != 2 or not all(0 < side < 100_000 for side in value)):
            raise PydanticCustomError("kind", "expected [height, width] in pixels")
        return value


class RetrainEntry(Entry):
    """How `weakspot causes retrain` trains and compares; what its options say goes first."""

    epochs: int = 10
    learning_rate: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 5e-4
    batch_size: int = 128
    patience: int = 3
    seed: int = 0
    repeats: int = 10
    validation: float | str = 0.2
    """The share of the labelled samples by which to judge when to stop, or the name of a split."""
    train: str | None = None
    """`module:function`: a training function of your own."""
    balance: bool = False
    """Draw images of rare causes again until all causes are as frequent."""
    methods: tuple[str, ...] | None = None
    """What to compare the unsafe set with; by default random and failing images where the pool has targets."""


def _execution(value: Any) -> ExecutionOptions:
    if isinstance(value, ExecutionOptions):
        return value
    if not isinstance(value, Mapping):
        raise PydanticCustomError("kind", "expected a mapping such as {batch_size: 16}")
    try:
        refuse_unknown(value, list(execution_fields()), of="execution")
        return ExecutionOptions(**value)
    except OptionError as error:
        raise _said([error.option], str(error)) from error


def _path_alone(value: Any) -> Any:
    if isinstance(value, str):
        return {"path": value}
    if isinstance(value, Mapping | DataEntry):
        return value
    raise PydanticCustomError("kind", "expected a path, module:function, or a mapping with a path")


class Config(Entry):
    """The whole file."""

    subject: SubjectEntry
    data: dict[str, Annotated[DataEntry, BeforeValidator(_path_alone)]]
    ask: dict[Any, Any] = Field(default_factory=dict)
    """Questions or probes, each with its options."""
    execution: Annotated[ExecutionOptions, PlainValidator(_execution)] = ExecutionOptions()
    """How the work is cut and run; what the command line says goes first."""
    retrain: RetrainEntry = Field(default_factory=RetrainEntry)
    """How to train further, once something is labelled."""
    run: str | None = None
    """Where the Run goes; by default `runs/` and the name of the file."""
    _places: Places | None = PrivateAttr(default=None)

    @field_validator("data")
    @classmethod
    def _splits(cls, value: dict[str, DataEntry]) -> dict[str, DataEntry]:
        odd = next((name for name in value if not _SPLIT.fullmatch(name)), None)
        if odd is not None or not value:
            named = f"{shortened(odd)} is no name for a split" if value else "no split is there"
            raise _said([] if odd is None else [odd], f"data: {named}: name splits like train, test, pool")
        return value

    @field_validator("ask")
    @classmethod
    def _questions(cls, value: dict[Any, Any]) -> dict[str, Any]:
        for name, options in value.items():
            if options is not None and not isinstance(options, Mapping):
                raise _said(
                    [name], f"ask.{name} is {shortened(options)}: expected a mapping of its options, or nothing"
                )
        try:
            check_plain(value, ["ask"])
        except UnusableError as error:
            raise _said(error.path[1:], str(error)) from error
        return value

    @property
    def places(self) -> Places | None:
        """Where its values stand, if it was read from a file."""
        return self._places


def _said(path: Sequence[Any], message: str) -> PydanticCustomError:
    """An error that knows its words, and the keys below the field where it lies."""
    return PydanticCustomError("said", "{what}", {"what": message, "path": list(path)})


def check_plain(value: Any, path: list[Any]) -> None:
    """Refuse what no option can be: a key that is no text, a number that is not finite or beyond 64 bits."""
    where = ".".join(path)
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise UnusableError(path, f"{where}: the key {shortened(key)} is no text; write it in quotes")
            check_plain(item, [*path, key])
    elif isinstance(value, list):
        for item in value:
            check_plain(item, path)
    elif isinstance(value, int | float) and not isinstance(value, bool) and not fits(value, int | float):
        raise UnusableError(path, f"{where} is {shortened(value)}: expected a finite number of usual size")


class UnusableError(ConfigError):
    """What no option can be; `path` is where it stands."""

    def __init__(self, path: Sequence[Any], message: str):
        super().__init__(message)
        self.path = path


def read_config(path: Path) -> Config:
    """Read and check the file."""
    return checked_config(*read_yaml(path))


def config_of(subject: Mapping[str, Any], data: Mapping[str, Any]) -> Config:
    """What was given elsewhere than in a file, as a configuration; its errors name no place."""
    raw, places = parse_yaml(json.dumps({"subject": subject, "data": data}), "here")
    try:
        return checked_config(raw, places, kept=False)
    except ConfigError as error:
        raise ConfigError(str(error).replace(f"{places.of()}: ", "")) from error


def checked_config(raw: Any, places: Places, *, kept: bool = True) -> Config:
    """What a file holds, as a configuration that knows, unless it is not to be kept, where each value stands."""
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{places.name} must hold the keys subject, data and ask; it holds {type(raw).__name__}")
    try:
        config = Config.model_validate({**raw, "ask": {}} if raw.get("ask", ()) is None else raw)
    except ValidationError as error:
        problems = [_problem(entry, places) for entry in error.errors() if entry["loc"][-2:] != ("preprocess", "str")]
        more = [f"… and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        raise ConfigError("\n".join([*problems[:_SHOWN], *more])) from error
    config._places = places if kept else None
    return config


def _problem(error: Any, places: Places) -> str:
    """One thing that is wrong: where, what, and what was expected."""
    path = [part for part in error["loc"] if part != "NormaliseEntry"]
    if path[-1:] == ["[key]"]:
        return f"{places.of(path[0])}: {path[0]}: the key {shortened(error['input'])} is no text; write it in quotes"
    if error["type"] == "said":
        return f"{places.of(*path, *error['ctx']['path'])}: {error['msg']}"
    name, where = ".".join(map(str, path)), places.of(*path)
    if error["type"] == "missing":
        return f"{where}: {name} is missing"
    if error["type"] == "extra_forbidden":
        keys = _known(path[:-1])
        return f"{where}: {name} is not known: {nearest(path[-1], keys)}there is {', '.join(keys)}"
    expected = error["msg"] if error["type"] == "kind" else "expected " + _expected(path)
    return f"{where}: {name} is {shortened(error['input'])}: {expected}"


def _known(path: Sequence[Any]) -> list[str]:
    """The keys that may stand there."""
    if path and path[0] == "data":
        return list(DataEntry.model_fields)
    if path[:2] == ["subject", "preprocess"]:
        return list(NormaliseEntry.model_fields)
    if path and path[0] == "retrain":
        return list(RetrainEntry.model_fields)
    return list((SubjectEntry if path and path[0] == "subject" else Config).model_fields)


def _expected(path: Sequence[Any]) -> str:
    wanted = {
        "subject": "a mapping that names the model",
        "data": "a mapping from splits to data",
        "retrain": "a mapping of how to train",
    }
    return wanted.get(str(path[0]), "a mapping from questions to their options") if path else "a mapping"
