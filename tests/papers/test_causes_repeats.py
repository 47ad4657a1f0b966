"""HUDD's retraining, a repeat at a time: as if all had been done at once, and none is done again."""

import json
from functools import partial

import numpy as np
import pytest

from weakspot import Subject
from weakspot.core.source import Subset
from weakspot.data import digits
from weakspot.repair import ExperimentDesign, Recipe, run_experiment


@pytest.fixture
def repeats(script, tmp_path, monkeypatch):
    """Forty labelled digits of a pool of eighty, in three clusters."""
    cases, module = script("causes_cases"), script("causes_repeats")
    monkeypatch.setattr(module, "Recipe", partial(Recipe, epochs=1))
    source = digits.test()
    places = np.split(np.arange(290), [100, 180, 240])
    names = ("train", "pool", "test", "fresh test")
    data = {name: Subset(source, own) for name, own in zip(names, places, strict=True)}
    case = cases.Case("digits", Subject(digits.model(), classes=10, scores="logits"), data, (40,))
    (tmp_path / "40").mkdir()
    clusters = {name: number % 3 + 1 for number, name in enumerate(data["pool"].ids[::2])}
    (tmp_path / "40" / "unsafe.json").write_text(json.dumps({"clusters": clusters, "threshold": None}))
    return module, module.Repeats(case, 40, tmp_path / "40", tmp_path / "trainings")


def test_repeats_one_by_one_are_those_of_one_call(repeats):
    module, kept = repeats
    for repeat in (1, 0):
        kept.train(repeat)
    found = {(row["test"], row["method"]): row for row in kept.rows()}
    assert len(found) == 10
    for test in module.TESTS:
        data = kept.unsafe.data(kept.case, test)
        design = ExperimentDesign(2, module.METHODS[1:], validation=0.0, balance=True)
        made = run_experiment(kept.case.subject, data, design, recipe=Recipe(epochs=1)).finding
        for method in module.METHODS:
            own = found[test, method]
            key = "" if method == "unsafe set" else method.replace(" ", "_")
            after = made.summary[f"after_{key}" if key else "after"]
            assert own["repeats"] == 2 and own["after"] == pytest.approx(after.value, abs=1e-4)
            over = made.summary[f"over_{key}" if key else "difference"]
            ends = [over.value, over.low, over.high]
            assert [own[name] for name in ("difference", "low", "high")] == pytest.approx(ends, abs=1e-4)
            assert f"{method} {own['added']}" in made.summary["added"].value


def test_what_is_kept_is_not_trained_again(repeats, monkeypatch):
    module, kept = repeats
    kept.train(0)
    monkeypatch.setattr(module, "run_experiment", None)
    kept.train(0)
    assert {row["repeats"] for row in kept.rows()} == {1}
