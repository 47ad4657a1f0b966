"""The room's page of weak inputs in a real browser, for data without labels."""

import numpy as np

from tests.report.browser import running
from tests.viewer.driving import CHROMIUM, needs_chromium, opened, serving, settled
from weakspot import Plan, Run, Subject
from weakspot.core.step import Step
from weakspot.data import digits
from weakspot.data.pictures import Pictures
from weakspot.data.sources import ArraySource
from weakspot.robustness.room import steps


@needs_chromium
def test_inputs_without_labels_are_shown_with_lambda_and_entropy(tmp_path):
    pool = ArraySource(digits.test().read(np.arange(60)).inputs.numpy())
    subject = Subject(digits.model(), classes=digits.CLASSES, scores="logits", bounds=(0, 1))
    run = Run.create(tmp_path / "run")
    asked = [*steps({"neighbours": {"rotate": 30}, "unlabelled": "test", "looks": 6}), Step.of(Pictures)]
    Plan.of(asked).run(subject, {"test": pool}, run)
    rows = [row for row in run["robustness.neighbour_diversity"].table.to_pylist() if not row["unanimous"]]
    with serving(run.folder) as address, running(CHROMIUM) as browser:
        page = opened(browser, address, "/weak")
        settled(page)
        said = page.run("document.querySelector('.gallery').innerText")
        assert "test: predicted differently when varied" in said and f"{len(rows)} samples in the grid" in said
        first = page.run("document.querySelector('.gallery li').innerText").splitlines()
        assert any(line.startswith("concentration 0.") for line in first), first
        assert any(line.startswith("entropy ") for line in first)
        assert page.run("document.querySelector('.gallery canvas').width") > 1
        assert page.complaints() == []
