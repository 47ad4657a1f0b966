"""The number of threads is chosen once, noted where work is begun, and kept by whoever goes on."""

import json

import pytest
import torch

from tests.core.helpers import Counting, Tally, numbered
from weakspot import Execution, Subject, examine
from weakspot.core.errors import ConfigError
from weakspot.core.observation import Observation
from weakspot.core.threads import begun_with, settled, torch_threads

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
    assert settled(Execution(), tmp_path / "work", 3).threads == 3
    assert settled(Execution(), tmp_path / "work", 5).threads == 3
    assert settled(Execution(threads=2), tmp_path / "work", 5).threads == 2
    assert settled(Execution(), tmp_path / "work", 5).threads == 2


@pytest.mark.parametrize("note", ["", "{}", "[]", '{"threads": 0}', '{"threads": "2"}', "\0"])
def test_a_damaged_note_is_as_none(tmp_path, note):
    (tmp_path / "execution.json").write_text(note)
    assert begun_with(tmp_path) is None
    assert settled(Execution(), tmp_path, 4).threads == 4
    assert json.loads((tmp_path / "execution.json").read_text()) == {"threads": 4}


def test_observing_and_finishing_compute_with_that_number_and_it_is_given_back():
    SEEN.clear()
    finding = examine(Subject(Counting()), numbered(4), [Threads()], execution=Execution(batch_size=2, threads=3))[0]
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
        Execution(threads=0)
