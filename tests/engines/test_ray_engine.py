"""The Ray engine: the bytes of one process, whatever happens to workers."""

import pickle
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.core.helpers import Keep, Tally
from tests.core.test_memory import Narrow
from tests.engines.helpers import (
    HOW,
    AlwaysDying,
    AlwaysFailing,
    AtOneInput,
    Dying,
    Hanging,
    HangingAtFirst,
    Interrupted,
    Noted,
    Odd,
    StopsAfter,
    exported,
    family,
    samples,
    several_rooms,
)
from weakspot import ExecutionOptions, Subject, examine
from weakspot.cli.error_attribution import user_error
from weakspot.core.costs import costs
from weakspot.core.errors import BadSample, ConfigError, SubjectError
from weakspot.core.job import Job
from weakspot.core.plan import Plan
from weakspot.core.step import Step
from weakspot.data import digits
from weakspot.data.sources import ArraySource
from weakspot.engines import RayEngine, dispatch, gathering
from weakspot.engines.schedule import Patience
from weakspot.models import load_exported


@pytest.fixture(scope="module")
def net():
    return digits.model()


@pytest.fixture(scope="module")
def local(net, tmp_path_factory):
    """What one process makes of several rooms' questions."""
    return several_rooms(tmp_path_factory.mktemp("local") / "run", net=net)


def same(finding, other):
    return finding.digest == other.digest


def test_questions_of_three_rooms_end_with_the_bytes_of_one_process(engine, net, local, tmp_path):
    progress = Noted()
    found = several_rooms(tmp_path / "run", net=net, engine=engine, progress=progress)
    assert found == local
    assert sum(name.endswith("finding.json") for name in found) >= 9
    assert progress.done == progress.total


def test_begun_in_one_process_it_ends_on_ray(engine, net, local, tmp_path):
    with pytest.raises(Interrupted):
        several_rooms(tmp_path / "run", net=net, engine=StopsAfter(11))
    assert any((tmp_path / "run").glob("work/*/shard-*"))
    assert several_rooms(tmp_path / "run", net=net, engine=engine) == local


def test_begun_on_ray_it_ends_in_one_process(engine, net, local, tmp_path):
    with pytest.raises(Interrupted):
        several_rooms(tmp_path / "run", net=net, engine=engine, progress=Noted(stop_after=40))
    assert any((tmp_path / "run").glob("work/*/shard-*"))
    assert several_rooms(tmp_path / "run", net=net) == local


def test_what_was_begun_with_two_threads_goes_on_with_two(engine, net, tmp_path):
    torch.set_num_threads(2)
    whole = several_rooms(tmp_path / "whole", net=net, threads=None, count=16)
    with pytest.raises(Interrupted):
        several_rooms(tmp_path / "run", net=net, threads=None, engine=StopsAfter(3), count=16)
    torch.set_num_threads(1)
    assert several_rooms(tmp_path / "run", net=net, threads=None, engine=engine, count=16) == whole


@pytest.mark.parametrize("piece", [gathering.PIECE, 7])
def test_where_workers_cannot_write_to_the_run_their_files_are_fetched(engine, tmp_path, monkeypatch, piece):
    data, probes = samples(40), [Keep(), Tally()]
    expected = examine(Subject(AtOneInput(tmp_path)), data, probes, execution=HOW)
    monkeypatch.setattr(gathering, "PIECE", piece)
    monkeypatch.setattr(Path, "touch", lambda path: None if ".probe" in path.name else path.open("a").close())
    found = examine(Subject(AtOneInput(tmp_path)), data, probes, execution=HOW, engine=engine)
    assert all(map(same, found, expected))


def test_only_the_shards_of_a_worker_that_dies_are_repeated(engine, tmp_path):
    expected = examine(Subject(AtOneInput(tmp_path)), samples(80), [Keep()], execution=HOW)[0]
    net, progress = Dying(tmp_path, pause=0.02), Noted()
    data = samples(80, 37)
    found = examine(Subject(net), data, [Keep()], execution=HOW, engine=engine, progress=progress)[0]
    assert (tmp_path / "mark").exists()
    assert found.arrays["look"].shape == expected.arrays["look"].shape
    assert same(found, examine(Subject(net), data, [Keep()], execution=HOW)[0])
    assert engine.repeated == [4]  # sample 37 lies in the fifth shard
    assert progress.done == 80


@pytest.mark.parametrize("copied", [True, False], ids=["another does its shard", "it is given up"])
def test_a_worker_that_hangs_is_replaced(engine, tmp_path, monkeypatch, copied):
    patience = Patience(least=60.0) if copied else Patience(least=1.0, slow=float("inf"))
    monkeypatch.setattr(engine, "_patience", patience)
    net, progress, data = Hanging(tmp_path), Noted(), samples(80, 37)
    found = examine(Subject(net), data, [Keep()], execution=HOW, engine=engine, progress=progress)[0]
    assert (tmp_path / "mark").exists()
    assert same(found, examine(Subject(net), data, [Keep()], execution=HOW)[0])
    assert progress.done == 80
    assert any("hangs: another one takes its place" in said for said in progress.said) is not copied


def test_workers_that_hang_before_any_shard_is_done_are_replaced(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "_patience", Patience(first=2.0))
    net, progress = HangingAtFirst(tmp_path, times=2), Noted()
    found = examine(Subject(net), samples(16), [Keep()], execution=HOW, engine=engine, progress=progress)[0]
    assert len(list(tmp_path.glob("hung-*"))) == 2
    assert sum("hangs: another one takes its place" in said for said in progress.said) >= 2
    assert same(found, examine(Subject(net), samples(16), [Keep()], execution=HOW)[0])


def raised(how):
    with pytest.raises(Exception) as caught:
        how()
    return caught.value


def test_errors_are_those_of_one_process_and_of_the_first_sample(engine, tmp_path):
    values = samples(80)._inputs.copy()
    values[70, 1], values[30, 1] = float("nan"), float("nan")
    data, subject = ArraySource(values), Subject(AtOneInput(tmp_path))
    here = raised(lambda: examine(subject, data, [Tally()], execution=HOW))
    there = raised(lambda: examine(subject, data, [Tally()], execution=HOW, engine=engine))
    assert type(here) is type(there) is BadSample
    assert (str(here), here.sample) == (str(there), there.sample)
    assert here.sample == "30"


def test_an_error_in_the_users_code_is_told_with_its_place(engine, tmp_path):
    subject = Subject(AlwaysFailing(tmp_path))
    here = raised(lambda: examine(subject, samples(40, 30), [Tally()], execution=HOW))
    there = raised(lambda: examine(subject, samples(40, 30), [Tally()], execution=HOW, engine=engine))
    assert str(user_error(here)) == str(user_error(there))
    assert "helpers.py:" in str(user_error(there))
    assert "in a worker" in there.__notes__[0]


def test_smaller_batches_are_told_and_noted_as_in_one_process(engine):
    data = ArraySource(samples(64)._inputs[:, [0, 1, 2, 0]])
    execution, progress = ExecutionOptions(batch_size=16, shard_size=32, workers=0, threads=1), Noted()
    found = examine(Subject(Narrow(5)), data, [Tally()], execution=execution, engine=engine, progress=progress)[0]
    assert found.provenance["execution"]["batch_size"] == 4
    assert progress.said == [f"the GPU's memory is too small: continuing with batches of {size}" for size in (8, 4)]
    assert progress.done == 64


def test_warnings_come_through(engine, tmp_path):
    with pytest.warns(UserWarning, match="this input is odd") as caught:
        examine(Subject(Odd(tmp_path, pause=0.05)), samples(40, 9), [Tally()], execution=HOW, engine=engine)
    assert caught[0].filename.endswith("helpers.py")


@pytest.mark.slow  # torch.export takes seconds to load, here and in each worker; test_travelling has the journey alone
@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")
@pytest.mark.parametrize("free", [True, False], ids=["free batch size", "fixed batch size"])
def test_exported_models_are_read_again_where_they_arrive(engine, tmp_path, free):
    subject = Subject(load_exported(exported(tmp_path, free=free)), fingerprint="net")
    here = examine(subject, samples(16), [Tally()], execution=HOW)[0]
    assert same(here, examine(subject, samples(16), [Tally()], execution=HOW, engine=engine)[0])


def test_what_cannot_be_sent_is_named_with_what_to_do(engine, tmp_path):
    net = AtOneInput(tmp_path)
    net.held = {"door": threading.Lock()}
    with pytest.raises(
        ConfigError, match=r"the model cannot be sent .*the model\.model\.held\['door'\] is a _thread\.l"
    ):
        examine(Subject(net), samples(16), [Tally()], execution=HOW, engine=engine)


def test_model_and_data_travel_once_and_messages_are_small(engine, tmp_path, monkeypatch):
    sizes, puts = [], []
    hand_over, put = dispatch.Dispatch._hand_over, RayEngine._put
    weigh = lambda self, member, shard: sizes.append(len(pickle.dumps((shard, 4)))) or hand_over(self, member, shard)  # noqa: E731
    monkeypatch.setattr(dispatch.Dispatch, "_hand_over", weigh)
    monkeypatch.setattr(RayEngine, "_put", lambda self, told, thing: puts.append(told) or put(self, told, thing))
    net = torch.nn.Linear(3, 300_000)
    how = ExecutionOptions(batch_size=4, shard_size=4, workers=0, threads=1)
    subject, data = Subject(net), samples(40)
    for weight in (1.0, 2.0):
        examine(subject, data, [Tally(weight=weight)], execution=how, engine=engine)
    assert puts == ["the model", "the data", "the questions", "the questions"]
    assert len(sizes) >= 20
    assert max(sizes) < 300


def test_the_plan_tells_what_it_takes_on_this_engine(engine, tmp_path):
    (cost,) = costs(
        Plan.of([Step.of(Tally)]), Subject(AtOneInput(tmp_path, pause=0.05)), {"test": samples(160)}, None,
        execution=HOW, engine=engine,
    )  # fmt: skip
    assert cost.footprint.workers == 2
    assert 100e6 < cost.footprint.worker_bytes < 2e9
    assert 100e6 < cost.footprint.driver_bytes < 4e9
    assert 0.9 < cost.seconds < 60  # 160 samples in batches of 4, 50 ms each, by two: a second where nobody else works


def listening():
    """The addresses on which this process and what it started listen."""
    held, found = set(), set()
    for process in family():
        for handle in Path(f"/proc/{process}/fd").glob("*"):
            try:
                held.add(str(handle.readlink()))
            except OSError:
                continue
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in held:
                found.add(words[1].partition(":")[0])
    return found


def test_ray_listens_on_the_loopback_address_only(engine, tmp_path):
    examine(Subject(AtOneInput(tmp_path)), samples(8), [Tally()], execution=HOW, engine=engine)
    loopback = socket.inet_aton("127.0.0.1")[::-1].hex().upper()
    addresses = listening()
    assert addresses
    assert all(address.endswith(loopback) for address in addresses)


def test_another_cluster_than_the_one_at_hand_is_refused(engine, tmp_path):
    asked = Subject(AtOneInput(tmp_path)), samples(8), [Tally()]
    examine(*asked, execution=HOW, engine=engine)
    with RayEngine("auto", workers=1) as other:
        examine(*asked, execution=HOW, engine=other)
    with pytest.raises(ConfigError, match=r"connected to Ray at .* already, and 192\.0\.2\.1:6379 was asked for"):
        examine(*asked, execution=HOW, engine=RayEngine("192.0.2.1:6379"))


def test_workers_leave_nothing_behind(tmp_path, engine):
    job = Job(Subject(AtOneInput(tmp_path)), samples(16), [Tally()], HOW, tmp_path / "work")
    examine(job.subject, samples(16), [Tally()], execution=HOW, engine=engine, work=tmp_path / "work")
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == sorted(
        ["answers.json", "execution.json", job.probe_folder(0).name]
    )
    assert {path.name for path in job.probe_folder(0).iterdir()} == {"shard-000000", "shard-000001"}


@pytest.mark.parametrize(
    ("options", "message"),
    [({"workers": 0}, "0 workers can do nothing"), ({"gpus_per_worker": -1.0}, "expected 0 or more")],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(ConfigError, match=message):
        RayEngine(**options)


@pytest.mark.parametrize(("gpus", "device"), [(None, "cpu"), (0.0, "cpu"), (0.5, "cuda")])
def test_workers_compute_where_they_are_given_gpus(gpus, device):
    subject = Subject(torch.nn.Linear(3, 2))
    assert RayEngine(gpus_per_worker=gpus).device(subject).type == device


def test_more_workers_than_gpus_are_refused_here_before_they_wait_for_ever():
    engine = RayEngine(workers=3, gpus_per_worker=1.0)
    engine._ray = SimpleNamespace(cluster_resources=lambda: {"CPU": 8.0, "GPU": 2.0})
    with pytest.raises(ConfigError, match=r"GPUs for 2 workers with 1 each, and 3 were asked for: .*0\.5"):
        engine._room(threads=1, gpus=1.0)
    engine._ray = None


# The last tests leave no workers behind.


def test_where_all_workers_hang_it_ends_with_what_to_do_and_what_was_done_is_kept(engine, tmp_path, monkeypatch):
    work, subject = tmp_path / "work", Subject(HangingAtFirst(tmp_path, times=0))
    with pytest.raises(Interrupted):
        examine(subject, samples(32), [Keep()], execution=HOW, engine=StopsAfter(2), work=work)
    subject.model.times = float("inf")
    monkeypatch.setattr(engine, "_patience", Patience(first=0.5, attempts=1))
    with pytest.raises(SubjectError, match=r"2 workers hung before .* of 4 samples within 0\.5 s.*'s16'.*smaller"):
        examine(subject, samples(32), [Keep()], execution=HOW, engine=engine, work=work)
    assert len(list(work.glob("*/shard-*"))) == 2
    subject.model.times = 0
    whole = examine(subject, samples(32), [Keep()], execution=HOW)[0]
    assert same(whole, examine(subject, samples(32), [Keep()], execution=HOW, work=work)[0])


def test_a_shard_of_which_all_workers_die_is_blamed(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "_patience", Patience(attempts=2))
    with pytest.raises(SubjectError, match=r"2 workers died .* samples from 's8' to 's15': .*engine local"):
        examine(Subject(AlwaysDying(tmp_path)), samples(16, 9), [Tally()], execution=HOW, engine=engine)
