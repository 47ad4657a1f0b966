"""A shard that is not as it was written is done again, which is said; the Findings are the same."""

import logging
import os
import random
import re
import shutil

import pytest

from tests.core.helpers import Counting, Heard, Keep, Tally, numbered
from weakspot.attacks.store import FolderStore, damaged_parts
from weakspot.core import examine as frame
from weakspot.core.driver import examine
from weakspot.core.errors import RunError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.sealed import DIGESTS, damage, seal
from weakspot.core.subject import Subject

HOW = ExecutionOptions(batch_size=2, shard_size=3, workers=0, threads=1)


def found(work, **options):
    probes = [Tally(), Keep()]
    return [f.digest for f in examine(Subject(Counting()), numbered(8), probes, execution=HOW, work=work, **options)]


def zeroed(path, draw):
    path.write_bytes(bytes(path.stat().st_size))


def cut(path, draw):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path, draw):
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def fifo(path, draw):
    path.unlink()
    os.mkfifo(path)


def linked(path, draw):
    copy = path.with_name("copy")
    path.rename(copy)
    path.symlink_to(copy)


def grown(path, draw):
    path.write_bytes(path.read_bytes() + b"\0")


DAMAGES = {
    "zeroed": zeroed, "cut": cut, "flipped": flipped, "fifo": fifo, "linked": linked, "grown": grown,
    "empty": lambda path, draw: path.write_bytes(b""), "gone": lambda path, draw: path.unlink(),
    "other": lambda path, draw: (path.parent / "other").write_bytes(b"x"),
}  # fmt: skip


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Work that was done but for its Findings, and the digests of these."""
    folder = tmp_path_factory.mktemp("kept") / "work"
    return folder, found(folder)


@pytest.mark.parametrize("name", ["state.npz", "kept.json", "kept.sample", "kept.output", DIGESTS])
@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_file_of_a_shard_is_noticed_and_the_shard_done_again(kept, tmp_path, kind, name):
    whole, digests = kept
    work, heard = tmp_path / "work", Heard()
    shutil.copytree(whole, work)
    shard = next(path.parent for path in sorted(work.rglob("kept.json")))
    DAMAGES[kind](shard / name, random.Random(kind + name))
    assert found(work, progress=heard) == digests
    (said,) = heard.said
    assert said.startswith(f"1 of 3 shards of keep were damaged and are done again; the first is {shard.name} (")
    assert found(work, progress=heard) == digests and len(heard.said) == 1


@pytest.mark.parametrize("made", [lambda shard: shard.write_text("x"), lambda shard: shard.symlink_to(shard.parent)])
def test_what_lies_in_the_place_of_a_shard_gives_way(kept, tmp_path, made):
    whole, digests = kept
    work, heard = tmp_path / "work", Heard()
    shutil.copytree(whole, work)
    shards = sorted(path.parent for path in work.rglob("kept.json"))
    shutil.rmtree(shards[1])
    made(shards[1])
    assert found(work, progress=heard) == digests and len(heard.said) == 1
    assert sorted(path.name for path in shards[0].parent.iterdir()) == [shard.name for shard in shards]


def test_without_progress_it_is_logged_as_a_warning(kept, tmp_path, caplog):
    shutil.copytree(kept[0], tmp_path / "work")
    next((tmp_path / "work").rglob("state.npz")).write_bytes(b"")
    assert found(tmp_path / "work") == kept[1]
    ((name, level, text),) = caplog.record_tuples
    assert (name, level) == ("weakspot", logging.WARNING)
    assert re.search(r"1 of 3 shards of \w+ were damaged and are done again.*state.npz", text)


def test_a_disk_that_damages_all_that_is_written_is_an_error(tmp_path, monkeypatch):
    def bad_disk(folder):
        seal(folder)
        (folder / "state.npz").write_bytes(b"")

    monkeypatch.setattr(frame, "seal", bad_disk)
    with pytest.raises(RunError, match=r"shard-000000 is damaged each time it is written \(state.npz: not as written"):
        found(tmp_path / "work", progress=Heard())


def test_of_an_attacked_set_a_damaged_part_is_known(tmp_path):
    import numpy as np

    store = FolderStore(tmp_path)
    for number in range(3):
        store.put(number, np.full((2, 3), number, dtype=np.float32), {"changed": np.ones(2, dtype=bool)})
    assert not list(damaged_parts(tmp_path))
    zeroed(tmp_path / "part-000001" / "outcome.npz", None)
    inputs = tmp_path / "part-000002" / "inputs.npy"
    inputs.write_bytes(inputs.read_bytes()[:-8] + bytes(8))
    reasons = {part.name: reason for part, reason in damaged_parts(tmp_path)}
    assert reasons == {"part-000001": "outcome.npz: not as written", "part-000002": "inputs.npy: not as written"}


def test_what_is_sealed_is_whole_and_each_difference_is_named(tmp_path):
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    seal(tmp_path)
    assert damage(tmp_path) is None
    (tmp_path / "a").write_text("c")
    (tmp_path / "b").unlink()
    (tmp_path / "d").write_text("d")
    assert damage(tmp_path) == "a, b, d: not as written"
    (tmp_path / DIGESTS).write_text("[]")
    assert damage(tmp_path) == "digests.json is no mapping"
    assert damage(tmp_path / "nothing") == "digests.json: No such file or directory"
