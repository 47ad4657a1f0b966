"""What the driver does with workers that are there, but never ready."""

import time
from types import SimpleNamespace

import pytest

from tests.core.helpers import Keep
from tests.engines.helpers import HOW, AtOneInput, Noted, samples
from weakspot import Subject
from weakspot.core.errors import SubjectError
from weakspot.core.job import Job
from weakspot.engines.crew import Member
from weakspot.engines.dispatch import Dispatch, Parcel
from weakspot.engines.schedule import Patience


class Silent:
    """An actor that takes every call and never answers."""

    def __getattr__(self, name):
        return SimpleNamespace(remote=lambda *_: object(), options=lambda **_: self.any)


def taking(tmp_path, workers):
    """A dispatch with so many workers that were just sent model, data and job."""
    members = {number: Member(number, Silent(), about={"node": "there"}) for number in range(workers)}
    crew = SimpleNamespace(members=members, refused=0, dismiss=members.pop)
    job = Job(Subject(AtOneInput(tmp_path)), samples(16), [Keep()], HOW, tmp_path / "work")
    parcel, patience = Parcel(("subject", None), ("source", None), None), Patience(first=5.0, attempts=1)
    made = Dispatch(None, crew, parcel, job, job.shards(), Noted(), workers=workers, patience=patience)
    for member in members.values():
        made._prepare(member)
    return made, members


def test_who_never_gets_ready_hangs_and_who_does_not(tmp_path):
    made, members = taking(tmp_path, 2)
    assert made._never_ready(time.monotonic() + 4) == []
    made._ready(members[0], True, None)
    assert made._never_ready(time.monotonic() + 6) == [1]


def test_where_nobody_gets_ready_it_ends(tmp_path, monkeypatch):
    made, members = taking(tmp_path, 2)
    later = time.monotonic() + 6
    monkeypatch.setattr("weakspot.engines.dispatch.time.monotonic", lambda: later)
    with pytest.raises(SubjectError, match="2 workers hung before any shard was done, the last on there"):
        made._give_up_slow()
    assert list(members) == [1]
    assert made._progress.said == ["worker 0 on there hangs: another one takes its place"]
