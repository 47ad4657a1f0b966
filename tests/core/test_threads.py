"""Threads and batch size are chosen once, noted where work is begun, and kept by whoever resumes it."""

import json

import pytest
import torch

from tests.core.helpers import Counting, Tally, numbered
from weakspot import ExecutionOptions, Subject, examine
from weakspot.core.engine import LocalEngine
from weakspot.core.errors import ConfigError
from weakspot.core.observation import Observation
from weakspot.core.threads import begun_with, note_begun, pinned, torch_threads

SEEN: list[int] = []


class Threads(Tally):
    """Notes with how many threads it is computed.

    weight: of each output.
    """

    def observe(self, seen: Observation) -> None:
        SEEN.append(torch.get_num_threads())
        super().observe(seen)

    def finish(self):
        SEEN.append(torch.get_num_threads())
        return super().finish()


def test_what_is_asked_for_goes_first_then_what_was_begun_then_what_is_usual(tmp_path):
    work = tmp_path / "work"
    assert pinned(ExecutionOptions(), work, 3) == ExecutionOptions(threads=3)
    note_begun(work, ExecutionOptions(threads=3, batch_size=16))
    assert pinned(ExecutionOptions(), work, 5) == ExecutionOptions(threads=3, batch_size=16)
    assert pinned(ExecutionOptions(threads=2), work, 5) == ExecutionOptions(threads=2, batch_size=16)
    assert pinned(ExecutionOptions(batch_size=8), work, 5) == ExecutionOptions(threads=3, batch_size=8)
    note_begun(work, ExecutionOptions(threads=2, batch_size=8))
    assert pinned(ExecutionOptions(), work, 5) == ExecutionOptions(threads=2, batch_size=8)


@pytest.mark.parametrize("note", ["", "{}", "[]", '{"threads": 0}', '{"threads": "2"}', '{"threads": true}', "\0"])
def test_a_damaged_note_is_as_none(tmp_path, note):
    (tmp_path / "execution.json").write_text(note)
    assert begun_with(tmp_path) == {}
    assert pinned(ExecutionOptions(), tmp_path, 4).threads == 4
    note_begun(tmp_path, ExecutionOptions(threads=4, batch_size=2))
    assert json.loads((tmp_path / "execution.json").read_text()) == {"threads": 4, "batch_size": 2}


def test_observing_and_finishing_compute_with_that_number_and_it_is_given_back():
    SEEN.clear()
    finding = examine(
        Subject(Counting()), numbered(4), [Threads()], execution=ExecutionOptions(batch_size=2, threads=3)
    )[0]
    assert SEEN == [3, 3, 3]
    assert torch.get_num_threads() == 1
    assert finding.provenance["execution"]["threads"] == 3


def test_it_is_given_back_after_an_error_too():
    with pytest.raises(ZeroDivisionError), torch_threads(2):
        assert torch.get_num_threads() == 2
        raise ZeroDivisionError
    assert torch.get_num_threads() == 1


def test_none_is_no_number_of_threads():
    with pytest.raises(ConfigError, match="threads is 0: expected 1 or more"):
        ExecutionOptions(threads=0)


def test_an_engine_that_is_given_beside_another_that_is_named_is_refused():
    with pytest.raises(ConfigError, match="the options name the engine ray, and engine= gives another: give one"):
        examine(
            Subject(Counting()), numbered(4), [Tally()], engine=LocalEngine(), execution=ExecutionOptions(engine="ray")
        )
