"""Findings with one of everything, and names that try to break out of the page."""

import numpy as np
import pyarrow as pa

from weakspot.core.finding import Estimate, Finding, Picture
from weakspot.data.images import png
from weakspot.rooms import declared

MODEL, TRAIN, TEST = "a" * 64, "b" * 64, "c" * 64
HOSTILE = "<script>alert(1)</script>"
QUOTED = "it's \"quoted\"\n</td><img src=x onerror='alert(2)'>"


def provenance(*, data: str = TEST, subject: str = MODEL, **parameters: object) -> dict[str, object]:
    return {"probe": "a:B", "parameters": parameters, "subject": subject, "data": data, "samples": 300}


def ranges() -> Finding:
    return Finding("coverage.ranges", about="Bounds.", provenance=provenance(data=TRAIN, layers="all"))


def coverage(upstream: Finding) -> Finding:
    sizes = np.array([1, 10, 300])
    return Finding(
        "coverage.sections",
        about="Share of the sections reached.",
        summary={
            "coverage": Estimate(0.81967, about="share of the targets"),
            "unseen": Estimate(0.25, 0.125, 0.5, 0.95, about="share still to come"),
            "targets": Estimate(12200),
        },
        arrays={"curve_size": sizes, "curve_coverage": np.array([0.1, 0.4, 0.81967])},
        outputs=declared("coverage.k_multisection"),
        provenance=provenance(ranges=upstream.digest, parts=[{"degrees": 30}, {"pixels": 3}]),
    )


def neighbours() -> Finding:
    table = pa.table({"id": [QUOTED, *(f"digit-{i:04d}" for i in range(299))], "accuracy": np.linspace(0, 1, 300)})
    return Finding(
        "robustness.neighbours",
        about=f"Neighbours of {HOSTILE}.",
        summary={"worst": Estimate(HOSTILE, about=QUOTED), "gone": Estimate(None), "weak": Estimate(True)},
        table=table,
        media={QUOTED: Picture(png(np.zeros((2, 3, 3), np.uint8)), HOSTILE)},
        provenance=provenance(note=HOSTILE),
    )
