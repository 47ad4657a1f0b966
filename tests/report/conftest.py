"""A Run with one of everything."""

from pathlib import Path

import pytest

from tests.report.samples import HOSTILE, MODEL, TEST, TRAIN, coverage, neighbours, ranges
from weakspot.core.finding import Finding
from weakspot.core.run import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = Run.create(tmp_path / "run")
    made.describe(
        subject={"model": "Net<b>", "fingerprint": MODEL, "task": "classification", "classes": ["cat", HOSTILE]},
        data={
            "train": {"fingerprint": TRAIN, "samples": 1200},
            "test": {"fingerprint": TEST, "samples": 300},
        },
    )
    first = ranges()
    for finding in (first, coverage(first), neighbours(), Finding("bare")):
        made.save(finding)
    return made
