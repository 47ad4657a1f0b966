"""Loads one evil file after the other, as `python -m tests.models.evil_run`, in a process that watches itself.

An audit hook notes whatever runs a program, unpickles by name, writes or makes a file; a file that torch writes below
Python is found in the folder afterwards. Prints what happened as JSON.
"""

import argparse
import io
import json
import logging
import os
import resource
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from torch.export import Dim, export, save, unflatten

from tests.models.evil_archives import EvilArchives
from tests.models.evil_arrays import HONEST as HONEST_ARRAYS
from tests.models.evil_arrays import EvilArrays
from tests.models.evil_weights import HONEST, EvilWeights
from tests.models.nets import net
from weakspot.core.errors import WeakspotError
from weakspot.data.arrays import ArraySource
from weakspot.models import load_exported, read_weights

RUNS = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "subprocess.Popen",
        "ctypes.dlopen", "pickle.find_class", "socket.connect", "urllib.Request", "code.__new__")  # fmt: skip
CHANGES = (
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "shutil.",
)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND


class Watch:
    """Notes what must not happen while a file is loaded and its model runs."""

    def __init__(self):
        self.on, self.seen = False, []
        sys.addaudithook(self)

    def __call__(self, event, arguments):
        if not self.on:
            return
        bad = event.startswith(RUNS + CHANGES) or (event == "import" and "evil" in str(arguments[0]))
        if bad or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES):
            self.seen.append(f"{event} {str(arguments)[:200]}")


def honest_archive():
    made = io.BytesIO()
    save(export(net(), (torch.zeros(3, 3, 9, 9),), dynamic_shapes=({0: Dim("batch")},)), made)
    return made.getvalue()


def use_archive(file, unguarded):
    if unguarded:
        program = torch.export.load(file)
        unflatten(program)(torch.zeros(3, 3, 9, 9))
        program.module()(torch.zeros(3, 3, 9, 9))
        return
    model = load_exported(file)
    try:
        with torch.no_grad():
            model(torch.zeros(3, 3, 9, 9))
    except Exception as error:
        print("the model does not run:", type(error).__name__, file=sys.stderr)


def use_weights(file, unguarded):
    if unguarded:
        torch.load(file, weights_only=False)
    else:
        read_weights(file)


def use_arrays(file, unguarded):
    if unguarded:
        loaded = np.load(file, allow_pickle=True)
        for name in getattr(loaded, "files", ()):
            loaded[name]
        return
    source = ArraySource.npz(file, inputs="x", targets="y") if file.suffix == ".npz" else ArraySource.npy(file)
    source.fingerprint()
    source.read(np.arange(min(4, len(source.ids))))


def files_of(evil, kinds, count, folder):
    """(kind of evil, file), one after the other."""
    for kind, suffix, content in evil.drawn(kinds, count):
        file = folder / f"evil{suffix}"
        file.write_bytes(content)
        yield kind, file


def warm_up(folder):
    """So that nothing is imported for the first time while it is watched."""
    (folder / "honest.pt2").write_bytes(honest_archive())
    use_archive(folder / "honest.pt2", False)
    torch.save(HONEST, folder / "honest.pt")
    assert read_weights(folder / "honest.pt").tensors.keys() == HONEST.keys()
    np.savez(folder / "honest.npz", **HONEST_ARRAYS)
    np.save(folder / "honest.npy", HONEST_ARRAYS["x"])
    for name in ("honest.npz", "honest.npy"):
        use_arrays(folder / name, False)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("archives", "weights", "arrays"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--kinds", nargs="+", help="of evil, as the methods are named; all, unless said")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--unguarded", action="store_true", help="as torch alone would load them")
    return parser.parse_args()


def used(use, file, given, marks, watch):
    """How it ended, whether anything was executed or written, and what was strange about it."""
    before, watch.seen, watch.on = len(list(marks.iterdir())), [], True
    try:
        use(file, given.unguarded)
        end, error = "loaded", ""
    except WeakspotError:
        end, error = "refused", ""
    except BaseException as caught:
        end, error = "failed", f"{type(caught).__name__}: {str(caught)[:300]}"
    watch.on = False
    sys.modules.pop("evil_module", None)
    return end, bool(watch.seen) or len(list(marks.iterdir())) > before, f"{error} {watch.seen}"


def main():
    given, watch = arguments(), Watch()
    resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    marks = given.folder / "marks"
    marks.mkdir()
    (given.folder / "evil_module.py").write_text(
        f"import os, uuid\nos.mkdir({str(marks)!r} + '/' + uuid.uuid4().hex)\n"
    )
    sys.path.insert(0, str(given.folder))
    warm_up(given.folder)
    if given.what == "archives":
        evil, use = EvilArchives(honest_archive(), marks, given.seed), use_archive
    elif given.what == "weights":
        evil, use = EvilWeights(marks, given.seed), use_weights
    else:
        evil, use = EvilArrays(marks, given.seed), use_arrays
    ends, harmful, strange = Counter(), Counter(), []
    for kind, file in files_of(evil, given.kinds or evil.kinds(), given.count, given.folder):
        end, harm, note = used(use, file, given, marks, watch)
        ends[end] += 1
        if harm:
            harmful[kind] += 1
        if harm or end == "failed":
            strange.append(f"{kind}: {note}")
    left = sorted(path.name for path in given.folder.iterdir() if not path.name.startswith(("evil", "honest", "marks")))
    print(
        json.dumps(
            {"ends": ends, "harmful": harmful, "strange": strange, "left": left, "marks": len(list(marks.iterdir()))}
        )
    )


if __name__ == "__main__":
    main()
