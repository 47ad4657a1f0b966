"""Folders that appear whole or not at all, also where two processes make the same one."""

import pytest

from weakspot.core.errors import RunError
from weakspot.core.files import put_first, replace_folder, tidy, whole_folder


def made(folder, text):
    folder.mkdir(parents=True)
    (folder / "file").write_text(text)
    return folder


def test_the_first_of_two_wins_and_the_other_leaves_no_trace(tmp_path):
    target = tmp_path / "shard"
    with whole_folder(target, first_wins=True) as slow:
        (slow / "file").write_text("slow")
        with whole_folder(target, first_wins=True) as fast:
            (fast / "file").write_text("fast")
        assert (target / "file").read_text() == "fast"
    assert (target / "file").read_text() == "fast"
    assert [path.name for path in tmp_path.iterdir()] == ["shard"]


def test_otherwise_the_last_one_replaces_what_was_there(tmp_path):
    made(tmp_path / "shard", "old")
    with whole_folder(tmp_path / "shard") as folder:
        (folder / "file").write_text("new")
    assert (tmp_path / "shard" / "file").read_text() == "new"


def test_what_cannot_be_put_there_for_another_reason_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        put_first(made(tmp_path / "made", "x"), tmp_path / "missing" / "shard")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match="cannot write"), whole_folder(tmp_path / "file" / "shard", first_wins=True):
        pass


def test_a_folder_taken_away_by_a_killed_process_comes_back(tmp_path):
    target, new = tmp_path / "a.b", tmp_path / "new"
    for folder, text in ((target, "old"), (new, "new")):
        folder.mkdir()
        (folder / "file").write_text(text)
    with pytest.raises(FileNotFoundError):
        replace_folder(tmp_path / "missing", target)  # as if killed between both renames
    assert not target.exists()
    tidy(tmp_path)
    assert (target / "file").read_text() == "old" and not list(tmp_path.glob(".*"))
    replace_folder(new, target)
    tidy(tmp_path)
    assert (target / "file").read_text() == "new" and sorted(p.name for p in tmp_path.iterdir()) == ["a.b"]


def test_what_was_replaced_does_not_come_back_over_its_successor(tmp_path):
    for name in ("a", ".a.01234567.replaced"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    tidy(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["a"] and (tmp_path / "a" / "file").read_text() == "a"
