"""A probe: one question, asked of every sample in one pass over the data."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, dataclass_transform, get_type_hints

import numpy as np
import torch

from weakspot.core.digest import canonical, class_code
from weakspot.core.errors import ConfigError, ProbeError
from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.core.layers import Side
from weakspot.core.needs import Needs
from weakspot.core.observation import Batch, Observation, Setting
from weakspot.core.options import checked, refuse_unknown
from weakspot.core.outputs import Outputs
from weakspot.core.rows import RowTable, RowWriter
from weakspot.core.source import Source
from weakspot.core.state import declared, narrowed
from weakspot.core.step import Step
from weakspot.core.taps import Layers, Tap
from weakspot.core.tasks import TASKS, Task


class RowStore:
    """What a probe sees of one kind of its rows: `append` while observing, `read` in `finish`."""

    def __init__(self, name: str):
        self._name = name
        self._writer: RowWriter | None = None
        self._table: RowTable | None = None
        self._batch: Batch | None = None

    def append(self, ids: Sequence[str], **columns: Any) -> None:
        """Add one record per id, of the current batch; repeat an id for several records, leave it out for none."""
        if self._writer is None or self._batch is None:
            raise ProbeError(f"rows {self._name!r} can be written in observe and close only")
        try:
            positions = self._batch.positions_of(ids)
        except KeyError as error:
            raise ProbeError(f"rows {self._name!r}: {error} is no sample of this batch") from None
        self._writer.append(positions, columns)

    def read(self) -> RowTable:
        """All records, memory-mapped."""
        if self._table is None:
            raise ProbeError(f"rows {self._name!r} can be read in finish only")
        return self._table


class Rows:
    """Declares records per sample: zero, one or several, on disk as soon as they are made."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, probe: "Probe | None", owner: type | None = None) -> RowStore:
        if probe is None:
            return self  # type: ignore[return-value]  # read on the class, the declaration itself
        return probe.__dict__.setdefault(self._name, RowStore(self._name))  # type: ignore[no-any-return]


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Probe(ABC):
    """One question. Subclasses are keyword-only dataclasses by themselves: annotated attributes are options.

    Declare state with `Sum`, `Min`, `Max`, `LogicalOr` or `Rows`, say what you need, fold each observation into the
    state, and make the Finding from it. No device logic, plotting or files: the frame does that.

    tasks: the kinds of subject the question makes sense for.
    split: the data it is asked about unless a step says otherwise.
    name_says_split: whether the Finding about another split than that is named after it, as in `name-train`.
    outputs: what its Finding holds: numbers, columns, arrays, figures and sentences, with units and directions.
    by_group: numbers, and columns of ends, whose intervals `finish` takes by `setting.groups_of` where samples belong
        together. Means of columns (`mean_of`) go by group without it; every other interval is then left out.
    """

    tasks: ClassVar[tuple[Task, ...]] = TASKS
    split: ClassVar[str] = "test"
    name_says_split: ClassVar[bool] = True
    outputs: ClassVar[Outputs] = Outputs()
    by_group: ClassVar[tuple[str, ...]] = ()
    setting: Setting

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not isinstance(cls.outputs, Outputs):
            raise ProbeError(
                f"{cls.__name__}.outputs is a {type(cls.outputs).__name__}: expected weakspot.Outputs, which declares "
                "what the Finding holds; give your state or option another name"
            )
        written = cls.__doc__
        dataclass(kw_only=True, eq=False)(cls)
        cls.__doc__ = written  # a dataclass makes one up where there is none

    @classmethod
    def name(cls) -> str:
        """The Finding's name: room and class, in lower case."""
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower()
        package = cls.__module__.split(".")
        return f"{package[1]}.{words}" if package[0] == "weakspot" and len(package) > 2 else words

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The steps whose Findings fill options of this probe, by the option's name."""
        return {}

    @classmethod
    def check_task(cls, task: Task, options: Mapping[str, Any]) -> None:
        """Refuse a kind of subject that the question makes no sense for, before anything runs."""
        if task not in cls.tasks:
            raise ConfigError(f"{cls.name()} examines {' or '.join(cls.tasks)}, the subject's task is {task}")

    @classmethod  # noqa: B027 - most probes may be asked of any data
    def check_splits(
        cls, split: str, options: Mapping[str, Any], data: Mapping[str, Source], upstream: Mapping[str, str]
    ) -> None:
        """Refuse data that the question must not be asked of, before anything runs.

        upstream: the split of each step that the question is built from, by the option that it fills.
        """

    @property
    def tap(self) -> Tap | None:
        """The layers whose values the probe wants to see at look 0; by default none."""
        return None

    @property
    def needs(self) -> Needs:
        """What the probe must be shown: by default look 0, its outputs, and what `tap` names."""
        return Needs() if self.tap is None else Needs(taps=(self.tap,))

    def wants(self, ids: Sequence[str]) -> Iterable[str] | None:
        """Which samples of a batch the probe is to be shown; None for all. What nobody wants is not looked at."""
        return None

    @abstractmethod
    def observe(self, seen: Observation) -> Iterable[str] | None:
        """Fold one look at one batch into the state; may return ids that need no more looks."""

    def close(self, ids: Sequence[str]) -> None:  # noqa: B027 - most probes need no word when a batch is complete
        """All looks at these samples are done: fold running sums over looks into the state."""

    @abstractmethod
    def finish(self) -> Finding:
        """Make the Finding from the merged state; `self.setting` knows the ids, layers and classes."""

    def finding(
        self, *, summary: Mapping[str, Estimate] | None = None, table: Mapping[str, Any] | None = None, **parts: Any
    ) -> Finding:
        """A Finding under this probe's name; `table` by columns, `about` the first line of the docstring.

        A number of the summary that says nothing about itself gets the declared words.
        """
        about = (type(self).__doc__ or "").strip().partition("\n")[0]
        numbers, rows = self.outputs.described(summary or {}), None if table is None else table_of(table)
        return Finding(name=self.name(), about=about, summary=numbers, table=rows, outputs=self.outputs, **parts)

    def identity(self) -> dict[str, Any]:
        """What is asked: the probe, the code it is written in, and its options."""
        return {"probe": canonical(type(self)), "code": class_code(type(self)), "parameters": self.parameters()}

    def parameters(self) -> dict[str, Any]:
        """The options as plain JSON; an option that is a Finding stands there by its digest."""
        return {entry.name: canonical(getattr(self, entry.name)) for entry in fields(self)}  # type: ignore[arg-type]

    def state(self) -> dict[str, np.ndarray]:
        """The state as arrays, whole numbers in as few bits as they need."""
        return {name: narrowed(getattr(self, name)).cpu().numpy() for name in declared(type(self))}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over a state."""
        for name, array in state.items():
            setattr(self, name, torch.from_numpy(np.array(array, dtype=np.int64 if array.dtype.kind == "i" else None)))

    @classmethod
    @cache
    def row_names(cls) -> list[str]:
        """The kinds of rows the probe declares."""
        return [name for base in reversed(cls.__mro__) for name, item in vars(base).items() if isinstance(item, Rows)]

    def begin_shard(self, folder: Path) -> list[RowWriter]:
        """An empty state, and fresh row files in `folder`; the frame finishes and closes the writers."""
        for name in declared(type(self)):
            self.__dict__.pop(name, None)
        writers = []
        for name in self.row_names():
            store: RowStore = getattr(self, name)
            store._writer, store._table = RowWriter(folder, name), None
            writers.append(store._writer)
        return writers

    def begin_batch(self, batch: Batch) -> None:
        """Tell the rows which samples come next."""
        for name in self.row_names():
            getattr(self, name)._batch = batch

    def open_rows(self, shards: Sequence[Path], scratch: Path) -> None:
        """Make the rows of all shards readable for `finish`."""
        for name in self.row_names():
            store: RowStore = getattr(self, name)
            store._writer, store._table = None, RowTable(name, shards, scratch, self.setting.ids)


class LayerProbe(Probe):
    """A probe of the neurons of some layers.

    layers: "all" convolutions and linears, "penultimate", names or patterns.
    side: the layer's "output", or "activated", the values after the activation that follows it, if one does.
    scaled: whether it asks for values that are scaled per input and layer, besides.
    """

    scaled: ClassVar[bool] = False

    layers: Layers = "all"
    side: Side = "output"

    @property
    def tap(self) -> Tap:
        """Where the neurons are."""
        return Tap(self.layers, side=self.side, scaled=self.scaled)


def complete_options(probe: type[Probe], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with the probe's defaults; one that it does not have, or a value that does not fit, is refused."""
    declared = fields(probe)  # type: ignore[arg-type]
    refuse_unknown(options, [entry.name for entry in declared], of=probe.name())
    hints = _hints(probe) if options else {}
    checked_options = {name: checked(name, value, hints[name], of=probe.name()) for name, value in options.items()}
    defaults = {entry.name: entry.default for entry in declared if entry.default is not MISSING}
    made = {entry.name: entry.default_factory() for entry in declared if entry.default_factory is not MISSING}
    return {**defaults, **made, **checked_options}


def _hints(probe: type[Probe]) -> dict[str, Any]:
    try:
        return get_type_hints(probe)
    except NameError as error:
        raise ProbeError(f"{probe.name()} annotates an option with what its module does not know: {error}") from error


def check_complete(probe: type[Probe], names: Sequence[str]) -> None:
    """Refuse a missing option that has no default."""
    has_none = [entry.name for entry in fields(probe) if entry.default is entry.default_factory is MISSING]  # type: ignore[arg-type]
    missing = [name for name in has_none if name not in names]
    if missing:
        raise ConfigError(f"{probe.name()} needs the option {', '.join(map(repr, missing))}: it has no default")
