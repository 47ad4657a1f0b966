"""OutputCheck to a few samples: a model that changed unseen is examined again, and one that varies is told."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from tests.core.helpers import After, Counting, Keep, Tally, numbered
from weakspot.core.answer_book import known_as
from weakspot.core.answers import OutputCheck, first_inputs, settings
from weakspot.core.costs import costs
from weakspot.core.driver import examine
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.plan import Plan
from weakspot.core.run import Run
from weakspot.core.step import Step
from weakspot.core.subject import Subject
from weakspot.data.sources import ArraySource

HOW = ExecutionOptions(batch_size=2, shard_size=2, workers=0, threads=1)
PLAN = Plan.of([Step.of(After), Step.of(Keep)])


class Noted:
    """Keeps what it is told."""

    def __init__(self):
        self.said = []

    def begin(self, what, *, total, done=0):
        pass

    def advance(self, samples):
        pass

    def tell(self, message):
        self.said.append(message)

    def end(self):
        pass


class Box:
    """A black box whose name does not say that it was changed."""

    def __init__(self, factor=1.0):
        self.factor, self.batches = factor, []

    def __call__(self, inputs):
        self.batches.append(len(inputs))
        return inputs[:, :2] * self.factor


def data(test=5):
    return {"train": numbered(6, prefix="train"), "test": numbered(test, prefix="test")}


@pytest.fixture
def run(tmp_path):
    return Run.create(tmp_path / "run")


def work(run, box, plan=PLAN, how=HOW, sources=None):
    """The Findings by name, what was told, and how many samples were looked at."""
    progress, before = Noted(), len(box.batches)
    subject = Subject(box, fingerprint="box 1")
    found = plan.run(subject, sources or data(), run, execution=how, progress=progress)
    assert subject.fingerprint() == Subject(box, fingerprint="box 1").fingerprint(), "it is itself again"
    return {finding.name: finding for finding in found}, progress.said, sum(box.batches[before:])


def fresh(tmp_path, box, plan=PLAN):
    return work(Run.create(tmp_path / "fresh"), box, plan)[0]


def test_a_model_that_answers_otherwise_is_examined_again(run, tmp_path):
    before, said, _ = work(run, Box())
    assert said == []
    after, said, _ = work(run, Box(-1.0))
    assert said == [
        "the model answers 2 samples of train otherwise than before, with the same weights and code (not "
        "fingerprinted: model: all of it, known by the name that it was given alone): nothing that was found of it is "
        "used again"
    ]
    for name, finding in fresh(tmp_path, Box(-1.0)).items():
        assert finding.summary == after[name].summary
        assert {key: array.tolist() for key, array in finding.arrays.items()} == {
            key: array.tolist() for key, array in after[name].arrays.items()
        }
        assert before[name].provenance["subject"] != after[name].provenance["subject"]
        assert finding.provenance["subject"] == after[name].provenance["code_and_weights"]


def test_once_it_is_told_apart_its_own_findings_are_used_again(run):
    work(run, Box())
    first, _, _ = work(run, Box(-1.0))
    second, said, seen = work(run, Box(-1.0))
    assert (said, seen) == ([], 2)
    assert {name: finding.digest for name, finding in first.items()} == {n: f.digest for n, f in second.items()}


def _stale(finding, run):
    return "" if finding.provenance["subject"] == run.manifest()["subject"]["fingerprint"] else "another model"


def test_what_was_not_asked_again_is_stale_and_never_used(run):
    before, _, _ = work(run, Box())
    work(run, Box(-1.0), Plan.of([Step.of(Keep)]))
    assert _stale(run["keep"], run) == "" and _stale(run["after"], run) == "another model"
    after, said, _ = work(run, Box(-1.0))
    assert said == []
    assert after["after"].arrays["total"].tolist() == [-value for value in before["after"].arrays["total"].tolist()]
    assert _stale(run["after"], run) == ""


def test_a_plan_counts_on_the_findings_of_the_model_that_was_told_apart(run):
    work(run, Box())
    work(run, Box(-1.0))
    subject = Subject(Box(-1.0), fingerprint="box 1")
    found = [set(cost.reused) for cost in costs(PLAN, subject, data(), run, execution=HOW)]
    assert found == [{"train_tally"}, {"after", "keep"}]
    assert known_as(subject, run.manifest()) == run.manifest()["subject"]["fingerprint"] != subject.fingerprint()
    assert run.manifest()["subject"]["code_and_weights"] == subject.fingerprint()


class Stops(Keep):
    """Ends in the middle."""

    stop = True

    def observe(self, seen):
        if self.stop and "test4" in seen.ids:
            raise ZeroDivisionError
        return super().observe(seen)


@pytest.mark.parametrize("factor", [1.0, -1.0])
def test_shards_of_another_model_are_not_gone_on_from(run, tmp_path, monkeypatch, factor):
    plan = Plan.of([Step.of(Stops)])
    with pytest.raises(ZeroDivisionError):
        work(run, Box(), plan)
    assert len(list(run.folder.glob("work/*/shard-*"))) == 2
    monkeypatch.setattr(Stops, "stop", False)
    found, said, seen = work(run, Box(factor), plan)
    assert seen == (2 + 2 + 1 if factor == 1.0 else 2 + 2 + 2 + 2 + 5)
    assert len(said) == (factor != 1.0)
    expected = fresh(tmp_path, Box(factor), plan)["stops"]
    assert found["stops"].arrays["output"].tolist() == expected.arrays["output"].tolist()


@pytest.mark.parametrize("factor", [1.0, -1.0])
def test_kept_shards_of_a_call_are_not_gone_on_from_either(tmp_path, monkeypatch, factor):
    def ask(box, progress=None):
        subject = Subject(box, fingerprint="box 1")
        return examine(subject, data()["test"], [Stops()], execution=HOW, work=tmp_path, progress=progress)[0]

    with pytest.raises(ZeroDivisionError):
        ask(Box())
    monkeypatch.setattr(Stops, "stop", False)
    box, progress = Box(factor), Noted()
    found = ask(box, progress)
    assert np.array_equal(found.arrays["output"], factor * data()["test"].read(np.arange(5)).inputs[:, :2].numpy())
    assert [said.partition(",")[0] for said in progress.said] == (
        [] if factor == 1.0 else ["the model answers 2 samples of the data otherwise than before"]
    )


def test_answers_are_compared_for_equal_settings_only(run):
    """Other threads, devices or versions of torch may round otherwise: then the fingerprint alone decides."""
    work(run, Box())
    two = ExecutionOptions(batch_size=2, shard_size=2, workers=0, threads=2)
    _, said, seen = work(run, Box(-1.0), how=two)
    assert (said, seen) == ([], 0)
    _, said, _ = work(run, Box(-1.0))
    assert len(said) == 1


def test_where_the_data_of_one_split_changed_another_is_asked_about(run):
    work(run, Box())
    sources = {"train": numbered(7, prefix="new"), "test": data()["test"]}
    _, said, _ = work(run, Box(-1.0), sources=sources)
    assert "2 samples of test otherwise" in said[0]


def test_a_run_of_before_has_no_answers_and_is_examined_without_a_word(run):
    work(run, Box())
    manifest = json.loads((run.folder / "run.json").read_text())
    for odd in ({}, {"answers": None}, {"answers": {"seen": ["?", {"of": 1}], "told_apart": 3}}):
        kept = {key: value for key, value in manifest.items() if key != "answers"}
        (run.folder / "run.json").write_text(json.dumps({**kept, **odd}))
        assert known_as(Subject(Box(), fingerprint="box 1"), run.manifest()) == manifest["subject"]["fingerprint"]
        _, said, seen = work(run, Box())
        assert (said, seen) == ([], 0)


def test_what_a_run_notes_of_answers(run):
    work(run, Box())
    noted = run.manifest()["answers"]
    assert {entry["data"] for entry in noted["seen"]} == {source.fingerprint() for source in data().values()}
    assert all(entry["samples"] == 2 and len(entry["digest"]) == 64 for entry in noted["seen"])
    assert {json.dumps(entry["on"]) for entry in noted["seen"]} == {json.dumps(settings(torch.device("cpu"), 1))}
    assert "told_apart" not in noted
    assert list(json.loads((run.folder / "run.json").read_text())) == [
        *("format", "version", "subject", "data", "answers", "asked", "findings")
    ]


class Noisy(nn.Module):
    """Draws at every call, also in evaluation."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x) + torch.randn(len(x), 2)


VARIES = "the model answers differently each time: the same 2 samples twice, and outputs lie up to"


def test_a_model_that_varies_is_told_and_noted(run):
    progress, subject = Noted(), Subject(Noisy())
    found = PLAN.run(subject, data(), run, execution=HOW, progress=progress)
    assert len(progress.said) >= 1 and all(said.startswith(VARIES) for said in progress.said)
    assert "cannot be repeated, and whether the model changed since cannot be seen" in progress.said[0]
    for finding in found:
        noted = finding.provenance["answers"]
        assert noted["same_each_time"] is False and noted["samples"] == 2 and noted["largest_difference"] > 0
    assert all("digest" not in entry for entry in run.manifest()["answers"]["seen"])
    again = Noted()
    reused = PLAN.run(subject, data(), run, execution=HOW, progress=again)
    assert [finding.digest for finding in reused] == [finding.digest for finding in found]
    assert len(again.said) == 1 and again.said[0].startswith(VARIES)


def test_a_call_without_progress_warns_of_a_model_that_varies(caplog):
    with caplog.at_level("WARNING", "weakspot"):
        (found,) = examine(Subject(Noisy()), numbered(6), [Tally()])
    assert "answers differently each time: the same 4 samples twice" in caplog.text
    assert found.provenance["answers"]["same_each_time"] is False


def test_a_model_that_became_noisy_is_another(run):
    class Steady(Box):
        noise = 0.0

        def __call__(self, inputs):
            return super().__call__(inputs) + self.noise * torch.randn(len(inputs), 2)

    work(run, Steady())
    noisy = Steady()
    noisy.noise = 1.0
    _, said, _ = work(run, noisy)
    assert "otherwise than before" in said[0] and "differently each time" in said[1]


def test_a_model_that_is_run_another_way_when_it_is_watched_does_not_vary(caplog):
    """torch runs this layer by one fused operator where nobody looks into it, and that rounds otherwise."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
    net = nn.Sequential(layer, nn.Flatten(), nn.Linear(64, 2)).eval()
    source = ArraySource(np.random.default_rng(0).normal(size=(4, 4, 16)).astype(np.float32))
    (found,) = examine(Subject(net), source, [Tally()])
    assert "answers" not in found.provenance and not caplog.records


def test_what_it_costs():
    """Beside the pass that lists the layers, one small pass; and one where all is used again."""
    net = Counting()
    examine(Subject(net), numbered(100), [Tally()], execution=ExecutionOptions(workers=0))
    assert net.batches == [4, 4, 64, 36]


@pytest.mark.parametrize(
    ("shape", "most", "expected"),
    [((9, 3), 64, 4), ((9, 3), 2, 2), ((3, 3), 64, 3), ((2, 2, 600, 600), 64, 1), ((1, 3), 64, 1)],
)
def test_few_samples_are_asked_about_and_fewer_where_they_are_large(shape, most, expected):
    source = ArraySource(np.zeros(shape, dtype=np.float32))
    assert len(first_inputs(source, most)) == expected


def test_answers_as_json():
    assert OutputCheck(3, "a").record() == {"samples": 3, "digest": "a"}
    assert OutputCheck(3, None, 0.5).record() == {"samples": 3, "largest_difference": 0.5}
    assert OutputCheck(3, None, float("inf")).record() == {"samples": 3, "largest_difference": "Infinity"}
    assert OutputCheck(3, "a").trouble is None
