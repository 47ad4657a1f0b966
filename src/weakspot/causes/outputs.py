"""What the Findings of this room hold, and how they are read: torch-free."""

from collections.abc import Sequence

from weakspot.causes.finding_outputs import ERRORS, LABELS, ROOT_CAUSES, UNSAFE
from weakspot.causes.slice_groups import cause_groups
from weakspot.causes.slice_outputs import ERROR_SLICES
from weakspot.causes.slice_pictures import slice_pictures
from weakspot.core.finding import Finding
from weakspot.core.room import Room, ViewerPage, WorstFinding
from weakspot.formatting import counted, number, roughly
from weakspot.repair.outputs import RETRAINING


def worst(findings: Sequence[Finding], task: str) -> list[WorstFinding]:
    """The first confirmed cause, and the largest cluster of errors."""
    return [*_first_cause(findings), *_largest_cluster(findings)]


def _first_cause(findings: Sequence[Finding]) -> list[WorstFinding]:
    slices = next((finding for finding in findings if finding.name == "causes.error_slices"), None)
    rows = [] if slices is None or slices.table is None else slices.table.to_pylist()
    row = next((row for row in rows if row["confirmed"] and row["kind"] != "confusion"), None)
    if slices is None or row is None:
        return []
    rate = f"{roughly(row['error_rate'])} (95\u00a0% interval {roughly(row['low'])} to {roughly(row['high'])})"
    total = slices.provenance.get("samples")
    return [
        WorstFinding(
            title=f"Errors of one kind: {row['rule']}",
            text=f"{rate} of these are predicted incorrectly, elsewhere {roughly(row['elsewhere'])}; confirmed on "
            "held-out data.",
            finding=slices.name,
            share=row["images"] / total if isinstance(total, int) and total else 0.0,
        )
    ]


def _largest_cluster(findings: Sequence[Finding]) -> list[WorstFinding]:
    root_causes = next((finding for finding in findings if finding.name == "causes.root_causes"), None)
    rows = [] if root_causes is None or root_causes.table is None else root_causes.table.to_pylist()
    if root_causes is None or not rows:
        return []
    row = max(rows, key=lambda row: row["images"])
    has_interval = {"low", "high"} <= row.keys() and row["low"] == row["low"]  # NaN where samples belong together
    interval = f" (95\u00a0% interval {roughly(row['low'])} to {roughly(row['high'])})" if has_interval else ""
    errors = f"{roughly(row['share'])} of the errors" if "share" in row else counted(row["images"], "error")
    shared = f" Shared: {row['shared']}." if row.get("shared") else ""
    total, picture = root_causes.provenance.get("samples"), f"cluster {row['cluster']}"
    return [
        WorstFinding(
            title=f"{number(row['images'])} errors with similar heat maps",
            text=f"Cluster {row['cluster']}, {errors}{interval}. They need not have one cause: look at them.{shared}",
            finding=root_causes.name,
            share=row["images"] / total if isinstance(total, int) and total else 0.0,
            pictures=[(picture, root_causes.media[picture])] if picture in root_causes.media else [],
        )
    ]


ROOM = Room(
    "causes",
    findings={
        "causes.errors": ERRORS,
        "causes.error_slices": ERROR_SLICES,
        "causes.root_causes": ROOT_CAUSES,
        "causes.unsafe": UNSAFE,
        "causes.labels": LABELS,
        "causes.retraining": RETRAINING,
    },
    worst=worst,
    pictures=slice_pictures,
    groups={"causes.error_slices": cause_groups},
    pages=(
        ViewerPage(
            "causes",
            "Root causes",
            "What errors have in common: rules, ranked, with wrong images beside correct ones like them.",
            ("causes.error_slices",),
        ),
        ViewerPage(
            "clusters",
            "Error clusters",
            "Errors with similar heat maps: what do they share?",
            ("causes.root_causes",),
        ),
        ViewerPage("label", "Label", "Images to label next.", ("causes.unsafe", "classes.label_plan")),
    ),
)
