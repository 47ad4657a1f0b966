"""Declared outputs: what a probe of one's own gets for declaring what its Finding holds."""

from dataclasses import replace

import numpy as np
import pytest

from tests.gate.samples import judged
from weakspot import Estimate, Finding, Observation, Plan, Probe, Rows, Step, Subject
from weakspot.compare import compare_findings
from weakspot.core.errors import ProbeError
from weakspot.core.figures import Histogram
from weakspot.core.finding import table_of
from weakspot.core.outputs import (
    Advice,
    ArraySpec,
    Headline,
    Outputs,
    ValueSpec,
    correct,
    count,
    interval,
    interval_end,
    number,
    optional,
    sample_id,
    share,
)
from weakspot.core.run import Run
from weakspot.data import digits
from weakspot.laws import LawBroken, check
from weakspot.report.drawings import figures
from weakspot.report.page import build_page


def test_an_interval_is_declared_once_and_gives_both_of_its_columns():
    assert interval("the share", unit="share") == {
        "low": interval_end("low end of the share", unit="share"),
        "high": interval_end("high end of the share", unit="share"),
    }
    assert list(interval("the share", "weak")) == ["weak_low", "weak_high"]


def test_what_may_be_missing_is_said_once_for_a_group():
    group = {"images": count("its images"), "rate": share("error rate", better="lower")}
    assert optional(group) == {
        "images": count("its images", optional=True),
        "rate": share("error rate", better="lower", optional=True),
    }
    assert optional({"low": ArraySpec("smallest value", ("neuron",))}) == {
        "low": ArraySpec("smallest value", ("neuron",), optional=True)
    }
    assert not group["images"].optional


class Sharpness(Probe):
    """How far the two highest outputs lie apart."""

    tasks = ("classification",)
    outputs = Outputs(
        summary={
            "accuracy": share("predicted correctly", better="higher", mean_of="correct"),
            "inputs": count("samples examined"),
        },
        columns={"id": sample_id(), "gap": number("highest less second highest output"), "correct": correct()},
        figures=[Histogram(values="table.gap", x_label="gap", caption="How the gaps spread.")],
        headlines=[Headline("{accuracy} of {inputs} inputs are predicted correctly.")],
        advice=[Advice("Look at the smallest gaps of the {inputs} inputs.")],
    )

    rows = Rows()

    def observe(self, seen: Observation) -> None:
        top = seen.outputs.double().topk(2).values
        self.rows.append(seen.ids, gap=top[:, 0] - top[:, 1], correct=seen.correct)

    def finish(self) -> Finding:
        rows = self.rows.read()
        order = np.argsort(np.asarray(rows.ids))
        hits = np.asarray(rows["correct"])[order]
        table = {"id": np.asarray(rows.ids)[order], "gap": np.asarray(rows["gap"])[order], "correct": hits}
        summary = {"accuracy": Estimate(float(hits.mean())), "inputs": Estimate(len(hits))}
        return self.finding(summary=summary, table=table)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    run = Run.create(tmp_path_factory.mktemp("outputs") / "run")
    subject = Subject(digits.model(), task="classification", classes=digits.CLASSES)
    Plan.of([Step.of(Sharpness)]).run(subject, {"test": digits.test()}, run)
    return run


def test_it_keeps_the_law_that_what_is_made_is_what_is_declared():
    check(Sharpness)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"summary": {"extra": Estimate(1)}}, "number 'extra' is not declared"),
        ({"summary": {}}, "number 'accuracy' is declared and not there"),
        (
            {"summary": {"accuracy": Estimate(1.5), "inputs": Estimate(1)}},
            "number 'accuracy' is 1.5, declared as share",
        ),
        ({"arrays": {"heat": np.ones(3)}}, "array 'heat' is not declared"),
        ({"table": None}, "column 'gap' is declared and not there"),
    ],
)
def test_what_differs_from_the_declaration_is_named(run, changes, problem):
    finding = replace(run["sharpness"], **changes)
    assert any(found.startswith(problem) for found in finding.outputs.problems(finding))
    with pytest.raises(ProbeError, match="is not what it declares"):
        finding.outputs.check(finding)


class Blunt(Sharpness):
    """Declares an array that it does not make."""

    outputs = replace(Sharpness.outputs, arrays={"map": ArraySpec("a map", ("y", "x"))})


def test_a_probe_that_makes_something_else_breaks_the_law():
    with pytest.raises(LawBroken, match="array 'map' is declared and not there"):
        check(Blunt)


def test_figures_and_sentences_must_rest_on_what_is_declared():
    lost = Outputs(
        headlines=[Headline("{nothing} is there.")], figures=[Histogram(values="table.no", x_label="", caption="")]
    )
    problems = lost.problems(Finding("mine"))
    assert "a figure needs 'table.no', which is not declared" in problems
    assert "a sentence needs the number 'nothing', which is not declared" in problems


def test_the_declaration_travels_with_the_finding(run):
    back = run["sharpness"].outputs
    assert back.number("accuracy") == ValueSpec("predicted correctly", "share", "higher", mean_of="correct")
    assert back.column("correct").role == "correct" and list(back.figures) == list(Sharpness.outputs.figures)
    assert back == Outputs.from_json(_json(back))


def _json(outputs):
    from weakspot.core.digest import canonical

    return canonical(outputs)


def test_its_numbers_are_printed_in_percent_and_its_figure_is_drawn(run):
    (section,) = (own for room in build_page(run).rooms for own in room.sections)
    assert section.summary[0].value.endswith("\u00a0%") and section.summary[0].about == "predicted correctly"
    (figure,) = figures(run["sharpness"], [])
    assert "<svg" in figure.svg and not figure.problem


def test_compare_and_gate_know_which_way_is_better(run, tmp_path):
    before = run["sharpness"]
    rows = before.table.to_pydict()
    worse = replace(before, table=table_of({**rows, "correct": [False] * len(rows["id"])}))
    (found,) = [one for one in compare_findings(before, worse) if one.column == "correct"]
    assert found.verdict == "worse" and "accuracy" not in [one.name for one in compare_findings(before, worse)]
    rule = "finding: sharpness, number: accuracy, worse_by_at_most: 0.01"
    assert judged(tmp_path, run, rule, baseline=run).passed


def test_the_viewer_has_a_page_for_it(run):
    from tests.viewer.runs import client_of

    client = client_of(run.folder)
    told = client.get("/api/findings/sharpness").json()
    assert told["figures"] == [{"caption": "How the gaps spread.", "problem": "", "drawings": 1}]
    assert [column["name"] for column in told["table"]["columns"]] == ["id", "gap", "correct"]
    drawing = client.get("/api/findings/sharpness/figure/0/0")
    assert drawing.headers["content-type"].startswith("image/svg+xml") and "<style>" in drawing.text
    assert client.get("/api/findings/sharpness/figure/0/9").status_code == 404
    assert "findings" in [page["page"] for page in client.get("/api/run").json()["pages"]]
