"""Files of each case for other tools: a table of its lesions, a label map with the same numbers, voxel maps, pictures.

Label map and voxel maps are NIfTI files on the grid of the case's own image files, so that they lie over the image in
any viewer, however the network saw it.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from weakspot.core.digest import canonical
from weakspot.core.errors import DataError, RunError
from weakspot.core.files import whole_folder, writing
from weakspot.core.finding import Finding
from weakspot.core.observation import Batch
from weakspot.core.progress import Progress, Silent
from weakspot.core.source import Source
from weakspot.core.subject import Subject
from weakspot.core.tasks import probabilities
from weakspot.data.images import png
from weakspot.data.nifti_files import write_nifti
from weakspot.data.nifti_grid import Grid
from weakspot.lesions.case_probes import Sampling
from weakspot.lesions.metrics import RunningSamples
from weakspot.lesions.metrics_components import lesion_components
from weakspot.lesions.slices import Scene, ShownLesion, slice_sheet

FORMAT, VERSION = "weakspot-lesions", 1
PROBABILITY = "false_positive_probability"
TABLE, LABELS, PICTURE = "lesions.csv", "lesions.nii.gz", "slices.png"
_AXES = ("z", "y", "x")
_DIGITS = 4
"""Of the voxel maps: more would be noise that takes ten times the space."""
_INNER = ("nodes",)
"""Columns that serve the lesion model and mean nothing outside of it."""


@dataclass(frozen=True)
class ExportedCase:
    """One case, ready to be written; arrays are (z, y, x) on the working grid.

    lesions: columns of the table, a row per lesion; `lesion` holds the values of the label map. The probability of a
        false positive may be among them.
    labels: the lesions.
    maps: the voxel maps by name.
    image: one sequence, for the pictures.
    grid: where the voxels lie.
    """

    name: str
    lesions: Mapping[str, np.ndarray]
    labels: np.ndarray
    maps: Mapping[str, np.ndarray]
    image: np.ndarray
    grid: Grid

    def __post_init__(self) -> None:
        listed = dict(zip(*(np.asarray(self.lesions[name]).tolist() for name in ("lesion", "voxels")), strict=True))
        sizes = enumerate(np.bincount(self.labels.ravel()).tolist())
        mapped = {number: voxels for number, voxels in sizes if number and voxels}
        if mapped != listed:
            raise DataError(
                f"case {self.name}: the table lists {len(listed)} lesions of {sum(listed.values())} voxels, the label "
                f"map holds {len(mapped)} of {sum(mapped.values())}: they must stem from the same samples and data; "
                "score the case again"
            )


def export_cases(
    finding: Finding,
    subject: Subject,
    source: Source,
    folder: Path,
    *,
    sampling: Sampling,
    grid: Callable[[str], Grid] | None = None,
    cases: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Write one folder per case below `folder`; what is there is not replaced.

    Each case is sampled again, which gives the same volumes, so that no voxel map needs to be kept.

    finding: the lesions, scored or not.
    sampling: how they were sampled and cut, as `Lesions(...).case_sampling` has it.
    grid: where the voxels of a case lie; by default as the source says, which `NiftiFolder` does.
    cases: which ones; all by default.
    """
    placed: Callable[[str], Grid] = grid or source.grid  # type: ignore[attr-defined]
    chosen = list(source.ids if cases is None else cases)
    for case in chosen:
        _check_free(folder / case)
    bar, positions = progress or Silent(), {case: position for position, case in enumerate(source.ids)}
    bar.begin("writing cases", total=len(chosen))
    try:
        written = []
        for case in chosen:
            if case not in positions:
                raise DataError(f"the data have no case {case!r}")
            batch = source.read(np.array([positions[case]]))
            written.append(export_case(sampled_case(finding, subject, batch, placed(case), sampling), folder))
            bar.advance(1)
        return written
    finally:
        bar.end()


def sampled_case(finding: Finding, subject: Subject, batch: Batch, grid: Grid, sampling: Sampling) -> ExportedCase:
    """A case with the voxel maps and labels that its lesions in the Finding come from."""
    maps = sampled_maps(subject, batch, sampling)
    definition = sampling.definition
    labels, _ = lesion_components(maps["lesion"] > definition.threshold, smallest=definition.smallest)
    return ExportedCase(
        batch.ids[0], lesions_of(finding, batch.ids[0]), labels, maps, batch.inputs[0, 0].cpu().numpy(), grid
    )


def sampled_maps(subject: Subject, batch: Batch, sampling: Sampling) -> dict[str, np.ndarray]:
    """The voxel maps of one case over all looks, each (z, y, x) and float64."""
    running, inputs = RunningSamples(sampling.foreground), batch.inputs.to(subject.device)
    look = sampling.look.within(subject.bounds)
    with subject.borrowed(), torch.no_grad():
        forward = subject.quick(compiled=False)
        for number in look.numbers(sampling.looks):
            outputs = look.outputs(forward, inputs, batch.ids, number)
            running.add(probabilities(outputs, subject.task, subject.scores))
    return {name: values[0].cpu().numpy() for name, values in vars(running.maps()).items()}


def lesions_of(finding: Finding, case: str) -> dict[str, np.ndarray]:
    """The rows of one case in a Finding's table, by column."""
    if finding.table is None or not {"case", "lesion"} <= set(finding.table.column_names):
        raise DataError(f"{finding.name} has no table of lesions with the columns case and lesion")
    columns = {name: finding.table[name].to_numpy(zero_copy_only=False) for name in finding.table.column_names}
    of_case = columns.pop("case") == case
    return {name: values[of_case] for name, values in columns.items() if name not in _INNER}


def export_case(case: ExportedCase, folder: Path, *, pictures: int = 6) -> Path:
    """Write `folder/CASE`, whole or not at all: lesions.csv and .json, lesions.nii.gz, a file per map, slices.png.

    pictures: how many lesions to show, those most and least likely to be false positives.
    """
    target = folder / case.name
    _check_free(target)
    labels = case.grid.to_file(case.labels, labels=True).astype(np.int32)
    rows = lesion_rows(case, labels)
    with whole_folder(target) as scratch, writing(target):
        (scratch / TABLE).write_text(_csv(rows), encoding="utf-8")
        (scratch / "lesions.json").write_text(_json(case, rows), encoding="utf-8")
        write_nifti(scratch / LABELS, labels, case.grid.affine)
        for name, values in case.maps.items():
            file = f"{'lesion_probability' if name == 'lesion' else name}.nii.gz"
            write_nifti(scratch / file, case.grid.to_file(values).round(_DIGITS).astype(np.float32), case.grid.affine)
        (scratch / PICTURE).write_bytes(png(case_picture(case, rows, labels, pictures)))
    return target


def _check_free(target: Path) -> None:
    if target.exists():
        raise RunError(f"{target} already exists: remove it, or write elsewhere")


def lesion_rows(case: ExportedCase, labels: np.ndarray) -> list[dict[str, Any]]:
    """A row per lesion: number, places, size, probability of a false positive, and the evidence.

    labels: the label map on the file's grid (x, y, z). `z`, `y`, `x` count voxels of the working grid, `i`, `j`, `k`
        those of the file, `x_mm`, `y_mm`, `z_mm` are world coordinates (right, anterior, superior) and `map_voxels`
        counts the lesion's voxels in the label map: 0 if it fell between the voxels of a coarser file.
    """
    columns = {name: np.asarray(values) for name, values in case.lesions.items()}
    number = columns.pop("lesion").astype(int)
    world = case.grid.millimetres(np.column_stack([columns[axis] for axis in _AXES]).reshape(-1, 3))
    file = np.linalg.solve(case.grid.affine, np.column_stack([world, np.ones(len(world))]).T)[:3].T
    counts = np.bincount(labels.ravel(), minlength=int(number.max(initial=0)) + 1)
    first = ("voxels", "volume_mm3", PROBABILITY)
    rows = []
    for index, lesion in enumerate(number.tolist()):
        row: dict[str, Any] = {"case": case.name, "lesion": lesion, **{a: columns[a][index] for a in _AXES}}
        row |= dict(zip("ijk", file[index], strict=True)) | dict(
            zip(("x_mm", "y_mm", "z_mm"), world[index], strict=True)
        )
        row |= {name: columns[name][index] for name in first if name in columns} | {"map_voxels": counts[lesion]}
        row |= {name: values[index] for name, values in columns.items() if name not in row}
        rows.append({name: _plain(value) for name, value in row.items()})
    return rows


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows; a case without lesions has the heading alone."""
    names = list(rows[0]) if rows else ["case", "lesion"]
    text = io.StringIO()
    table = csv.DictWriter(text, names, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def _json(case: ExportedCase, rows: Sequence[Mapping[str, Any]]) -> str:
    grid = {"spacing_mm": case.grid.spacing, "shape": case.grid.working_shape, "axes": "zyx"}
    file = {"shape": case.grid.shape, "affine": case.grid.affine.tolist(), "orientation": case.grid.axes, "axes": "xyz"}
    about = {"format": FORMAT, "version": VERSION, "case": case.name, "labels": LABELS, "grid": grid, "file": file}
    return json.dumps(canonical({**about, "lesions": list(rows)}), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def case_picture(case: ExportedCase, rows: Sequence[Mapping[str, Any]], labels: np.ndarray, most: int) -> np.ndarray:
    """Slices through the lesions that are most and least likely false positives, on the file's voxels turned to RAS."""
    shown = Grid(case.grid.shape, case.grid.affine, "RAS")
    image = shown.to_working(case.grid.to_file(case.image))
    probability = np.full(int(labels.max(initial=0)), np.nan)
    for row in rows:
        if row["lesion"] <= len(probability):
            probability[row["lesion"] - 1] = row.get(PROBABILITY, np.nan)
    scene = Scene(image, shown.to_working(labels, labels=True), probability, shown.spacing)
    back = np.linalg.inv(shown.working_affine)
    return slice_sheet(scene, [_shown(row, back) for row in chosen_rows(rows, most)])


def chosen_rows(rows: Sequence[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    """The lesions to show: from both ends, the likeliest false positives first; the largest where nothing is known."""
    if all(np.isnan(row.get(PROBABILITY, np.nan)) for row in rows):
        return sorted(rows, key=lambda row: -float(row["voxels"]))[:most]
    ordered = sorted(rows, key=lambda row: -np.nan_to_num(row[PROBABILITY], nan=-1))
    if len(ordered) <= most:
        return ordered
    return [*ordered[: most - most // 2], *ordered[len(ordered) - most // 2 :]]


def _shown(row: Mapping[str, Any], back: np.ndarray) -> ShownLesion:
    z, y, x = (back @ [row["x_mm"], row["y_mm"], row["z_mm"], 1.0])[:3].tolist()
    probability = row.get(PROBABILITY, np.nan)
    chance = "" if np.isnan(probability) else f", false positive with probability {probability:.2f}"
    size = row.get("volume_mm3", np.nan)
    extent = f"{row['voxels']} voxels" if np.isnan(size) else f"{size:.0f} cubic mm"
    truth = {True: " (truly a lesion)", False: " (truly none)"}.get(row.get("true_positive"), "")  # type: ignore[arg-type]
    return ShownLesion(row["lesion"], (z, y, x), f"lesion {row['lesion']}: {extent}{chance}{truth}")
