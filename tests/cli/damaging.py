"""A project and a Run with every kind of file that a command reads, and what can be wrong with any of them."""

import gzip
import json
import os
import random
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from PIL import Image
from pyarrow import parquet
from safetensors.torch import save_file

from tests.data.files import saved
from tests.data.niftis import data_set
from tests.gate.samples import causes, make_run, neighbours, pairs
from tests.viewer.label_runs import unsafe_finding
from weakspot.core.digest import digest_file
from weakspot.core.finding import Picture

MODULE = '''
import torch
from torch import nn

from weakspot import Estimate, Probe, Sum

class Count(Probe):
    """Counts inputs."""

    count = Sum()

    def observe(self, seen):
        self.count = self.count + len(seen.ids)

    def finish(self):
        return self.finding(summary={"counted": Estimate(int(self.count))})

def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 2))

def rows():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 2))

def unet():
    torch.manual_seed(0)
    return nn.Conv3d(1, 2, 1)
'''
POLICY = "rules: [{finding: robustness.neighbours, number: weak_share, at_most: 0.5}]\nbaseline: other\n"
OF_RUN = "run/findings/robustness.neighbours"


@dataclass(frozen=True)
class Kind:
    """A kind of file: where a good one lies, the commands that read it, and what `weakspot.yaml` says then."""

    path: str
    commands: tuple[tuple[str, ...], ...] = (("examine", "weakspot.yaml"),)
    text: bool = False
    """Whether it holds JSON or other text."""
    subject: Mapping[str, str] = field(default_factory=dict)
    data: str = "data.npz"
    also: str = ""
    """What else is read then."""


_READING = (("show", "run"), ("report", "run"), ("compare", "run", "other"), ("gate", "run", "policy.yaml"),
            ("evidence", "run"), ("show", "run", "robustness.neighbours"))  # fmt: skip
_JUDGING = (("gate", "run", "policy.yaml"), ("evidence", "run", "--policy", "policy.yaml"))
_NET, _UNET = {"model": "net"}, {"model": "unet", "task": "segmentation"}
_NPY, _IDX = "{path: x.npy, targets: y.npy}", "{path: images-ubyte, targets: labels-ubyte}"
KINDS = {
    "yaml": Kind("weakspot.yaml", text=True),
    "npz": Kind("data.npz"),
    "npy": Kind("x.npy", data=_NPY),
    "targets": Kind("y.npy", data=_NPY),
    "csv": Kind("list.csv", text=True, subject=_NET, data="list.csv", also="folder"),
    "image": Kind("folder/cat/a.png", subject=_NET, data="folder"),
    "zip": Kind("images.zip", subject=_NET, data="images.zip"),
    "idx": Kind("images-ubyte", subject=_NET, data=_IDX),
    "idx.gz": Kind("labels-ubyte", subject=_NET, data=_IDX),
    "nifti": Kind("set/imagesTr/a_0000.nii.gz", subject=_UNET, data="set"),
    "mask": Kind("set/labelsTr/a.nii.gz", subject=_UNET, data="set"),
    "dataset.json": Kind("set/dataset.json", text=True, subject=_UNET, data="set"),
    "metadata": Kind("meta.csv", text=True, data="{path: data.npz, metadata: meta.csv}"),
    "parquet": Kind("meta.parquet", data="{path: data.npz, metadata: meta.parquet}"),
    "classes": Kind("classes.txt", text=True, subject={"classes": "classes.txt"}),
    "safetensors": Kind("weights.safetensors", subject={"weights": "weights.safetensors"}),
    "checkpoint": Kind("weights.pt", subject={"weights": "weights.pt"}),
    "policy": Kind("policy.yaml", _JUDGING, text=True, also="other"),
    "labels": Kind("labels.csv", (("causes", "label", "labelled", "--import", "labels.csv"),), text=True),
    "labels.jsonl": Kind("labelled/labels.jsonl", (("causes", "label", "labelled", "--status"),), text=True),
    "run.json": Kind("run/run.json", _READING, text=True),
    "finding.json": Kind(f"{OF_RUN}/finding.json", _READING, text=True),
    "table": Kind(f"{OF_RUN}/table.parquet", _READING),
    "array": Kind(f"{OF_RUN}/curve_size.npy", _READING),
    "picture": Kind(f"{OF_RUN}/picture-0000.png", _READING),
}


def make_all(folder: Path) -> Path:
    """A good file of every kind."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    (folder / "policy.yaml").write_text(POLICY)
    np.savez(folder / "data.npz", x_test=rng.random((6, 3), dtype=np.float32), y_test=np.arange(6) % 2)
    np.save(folder / "x.npy", rng.random((6, 3), dtype=np.float32))
    np.save(folder / "y.npy", np.arange(6) % 2)
    picture = saved(Image.fromarray(rng.integers(0, 255, (4, 4, 3), dtype=np.uint8)), "PNG")
    for name in ("cat/a.png", "cat/b.png", "dog/c.png"):
        (folder / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "folder" / name).write_bytes(picture)
    (folder / "list.csv").write_text("path,target\nfolder/cat/a.png,cat\nfolder/dog/c.png,dog\n")
    with zipfile.ZipFile(folder / "images.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("cat/a.png", "dog/c.png"):
            archive.writestr(name, picture)
    (folder / "images-ubyte").write_bytes(bytes([0, 0, 8, 4]) + struct.pack(">4I", 3, 3, 4, 4) + bytes(range(144)))
    (folder / "labels-ubyte").write_bytes(gzip.compress(bytes([0, 0, 8, 1]) + struct.pack(">I", 3) + bytes([0, 1, 0])))
    data_set(folder / "set", cases=("a", "b"), sequences=1, shape=(4, 4, 4))
    (folder / "meta.csv").write_text("id,light\n" + "".join(f"{number},{number / 7}\n" for number in range(6)))
    table = pa.table({"id": [str(number) for number in range(6)], "light": rng.random(6)})
    parquet.write_table(table, folder / "meta.parquet")
    (folder / "classes.txt").write_text("cat\ndog\n")
    weights = {"0.weight": torch.zeros(2, 3), "0.bias": torch.ones(2)}
    save_file(weights, folder / "weights.safetensors")
    torch.save(weights, folder / "weights.pt")
    make_run(folder / "run", _found(picture), pairs(), causes([["s0", "s1"]]))
    make_run(folder / "other", neighbours(weak=np.arange(10) < 3))
    labelled = make_run(folder / "labelled", unsafe_finding(6, 2))
    (labelled.folder / "labels.jsonl").write_text('{"labels": {"image 000": "cat"}}\n')
    (folder / "labels.csv").write_text("id,label\nimage 001,dog\n")
    return folder


def _found(picture):
    plain = neighbours()
    arrays = {"curve_size": np.arange(1, 6), "curve_coverage": np.linspace(0.2, 0.9, 5)}
    media = {"s0": Picture(picture, "An input."), "s1": Picture(picture, "Another.")}
    return replace(plain, arrays=arrays, media=media)


def write_config(folder: Path, module: str, kind: Kind) -> None:
    """`weakspot.yaml` so that a file of that kind is read."""
    given = {"model": "rows", "scores": "logits", **kind.subject}
    inner = ", ".join(f"{name}: {value}" for name, value in {**given, "model": f"'{module}:{given['model']}'"}.items())
    text = f"subject: {{{inner}}}\ndata: {{test: {kind.data}}}\nask: {{'{module}:Count': }}\n"
    put(folder / "weakspot.yaml", text.encode())


def put(path: Path, content: bytes) -> None:
    """Replace a file, not its content: copies share it."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def _cut(draw, path):
    put(path, path.read_bytes()[: draw.randrange(path.stat().st_size)])


def _flipped(draw, path):
    content = bytearray(path.read_bytes())
    for _ in range(draw.choice([1, 3, 30])):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    put(path, bytes(content))


def _patched(draw, path):
    """A piece becomes another piece, or numbers that are far too large."""
    content = bytearray(path.read_bytes())
    start = draw.randrange(len(content))
    length = min(draw.choice([1, 2, 4, 8, 40]), len(content) - start)
    other = draw.randrange(len(content))
    content[start : start + length] = draw.choice(
        [b"\xff" * length, bytes(length), bytes(content[other : other + length])]
    )
    put(path, bytes(content))


def _shaken(draw, path):
    """One value of JSON becomes of another kind; other files are patched."""
    try:
        tree = json.loads(path.read_text())
        node, key = tree, draw.choice(list(tree))
    except (ValueError, TypeError, IndexError):
        return _patched(draw, path)
    while isinstance(node[key], dict | list) and node[key] and draw.random() < 0.7:
        node = node[key]
        key = draw.choice(list(node) if isinstance(node, dict) else range(len(node)))
    node[key] = draw.choice([None, 0, -1, 1e308, "", "../../etc/passwd", "☃", [], {}, [[]], True, [1, 2], {"a": [1]}])
    return put(path, json.dumps(tree).encode())


def _other_array(draw, path):
    if path.suffix != ".npy":
        return _flipped(draw, path)
    array = np.load(path)
    other = draw.choice([
        lambda: np.zeros((3, *array.shape), np.int8), lambda: array.reshape(-1)[:1], lambda: array[..., None],
        lambda: np.full(array.shape, np.nan), lambda: np.full(array.shape, 2**62), lambda: np.array(7),
        lambda: array[:0], lambda: np.full(array.shape, "☃"), lambda: array.astype(complex), lambda: array > 0,
        lambda: np.full(array.shape, "\ud800"),
    ])()  # fmt: skip
    path.unlink()
    return np.save(path, other)


def _other_table(draw, path):
    if path.suffix != ".parquet":
        return _patched(draw, path)
    table = parquet.read_table(path)
    place = draw.randrange(table.num_columns)
    name, rows = table.column_names[place], table.num_rows
    other = draw.choice([
        lambda: table.drop_columns([name]), lambda: table.slice(0, 0),
        lambda: table.set_column(place, name, pa.array([None] * rows, pa.string())),
        lambda: table.set_column(place, name, pa.array([[1, 2]] * rows)),
        lambda: table.set_column(place, name, pa.array([float("nan")] * rows)),
        lambda: table.set_column(place, name, pa.array([2**62] * rows)),
        lambda: table.set_column(place, name, pa.array([b"\xff\x00"] * rows)),
        lambda: table.append_column(name, table[name]), lambda: pa.concat_tables([table, table]),
        lambda: table.set_column(place, name, pa.array(list(range(rows)), pa.timestamp("ns"))),
    ])()  # fmt: skip
    path.unlink()
    return parquet.write_table(other, path)


def _fifo(draw, path):
    path.unlink()
    os.mkfifo(path)


def _folder(draw, path):
    path.unlink()
    path.mkdir()


def _linked(target):
    def damage(draw, path):
        path.unlink()
        path.symlink_to(target)

    return damage


def _huge(draw, path):
    """Twelve gigabytes of which hardly any take room."""
    put(path, path.read_bytes())
    os.truncate(path, 12 << 30)


CERTAIN = {
    "empty": lambda draw, path: put(path, b""),
    "noise": lambda draw, path: put(path, draw.randbytes(300)),
    "fifo": _fifo,
    "folder": _folder,
    "lost link": _linked("nowhere"),
    "device": _linked("/dev/zero"),
}
"""What no file survives: always an error."""
OF_TEXT = {
    "deep": lambda draw, path: put(path, b"[" * 100_000),
    "nested": lambda draw, path: put(path, b'{"a":' * 700 + b"1" + b"}" * 700),
    "surrogate": lambda draw, path: put(path, rb'{"format": "weakspot-run", "version": 1, "a": "\ud800"}'),
    "latin": lambda draw, path: put(path, "id,label\nimage 001,caf\xe9\n".encode("latin-1")),
    "nul": lambda draw, path: put(path, path.read_bytes()[:20] + b"\0" + path.read_bytes()[20:]),
    "huge": _huge,
}
"""Of files that hold text."""
PERHAPS = {
    "cut": _cut, "flipped": _flipped, "patched": _patched, "shaken": _shaken, "other array": _other_array,
    "other table": _other_table, "twice": lambda draw, path: put(path, path.read_bytes() * 2),
}  # fmt: skip
"""What may do no harm."""
DAMAGES = {**CERTAIN, **OF_TEXT, **PERHAPS}


def agree(folder: Path) -> None:
    """Let the Run name the Finding as it is now, so that what is wrong inside is met."""
    index, manifest = folder / OF_RUN / "finding.json", folder / "run" / "run.json"
    try:
        told, known = json.loads(index.read_text()), json.loads(manifest.read_text())
        told["files"] = {name: digest_file(index.parent / name) for name in told["files"]}
        put(index, json.dumps(told).encode())
        known["findings"]["robustness.neighbours"] = digest_file(index)
        put(manifest, json.dumps(known).encode())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return  # so damaged that nobody could make it agree


def draw_of(*parts: object) -> random.Random:
    """The same for the same parts, in every process."""
    return random.Random("/".join(map(str, parts)))
