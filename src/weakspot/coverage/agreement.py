"""Do the criteria agree, with each other and with the errors that a test set finds? Coverage alone is no verdict.

Published work finds little correlation between coverage and the faults that a test set reveals once its size is held
fixed (Harel-Canada et al. 2020, `harelcanada2020`). So it is measured here, for the model and the data at hand.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.rows import RowTable, id_order
from weakspot.coverage import outputs as declared
from weakspot.coverage.confidence import UNCERTAINTY
from weakspot.coverage.footprints import Footprints
from weakspot.coverage.reach import Cells, Reach
from weakspot.estimates import interval_estimate
from weakspot.statistics import auroc, auroc_interval, correlation_interval, percentile_interval, spearman

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """What random subsets of equal size and single inputs show, one column per measure."""

    subsets: dict[str, Floats]
    """Coverage, mean uncertainty, errors or distinct confusions of each subset."""
    inputs: dict[str, Floats]
    """What each input contributes to the coverage of all, or how unsure the model is of it."""
    wrong: NDArray[np.bool_] | None
    """Which inputs are answered wrongly; none where that is not known."""

    @cached_property
    def between_subsets(self) -> Floats:
        """Spearman's correlation of every two measures over the subsets; NaN where one is constant."""
        return spearman_matrix(self.subsets)

    @cached_property
    def between_inputs(self) -> Floats:
        """The same over the inputs."""
        return spearman_matrix(self.inputs)


def spearman_matrix(columns: dict[str, Floats]) -> Floats:
    """Spearman's rank correlation of every two columns; NaN where one is constant.

    >>> spearman_matrix({"a": np.array([1.0, 2, 3]), "b": np.array([3.0, 2, 1])}).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    values = list(columns.values())
    matrix = np.empty((len(values), len(values)))
    for first, column in enumerate(values):
        for second in range(first, len(values)):
            matrix[first, second] = matrix[second, first] = spearman(column, values[second])
    return matrix


def random_subsets(inputs: int, size: int, subsets: int, seed: int) -> list[NDArray[np.int64]]:
    """Random subsets of equal size, each drawn without replacement."""
    generator = np.random.default_rng(seed)
    return [generator.permutation(inputs)[:size] for _ in range(subsets)]


def subset_coverage(reach: Reach, subsets: list[NDArray[np.int64]]) -> Floats:
    """Share of the targets that each subset reaches."""
    return np.array([reach.covered_by(places) / reach.targets for places in subsets])


class CriteriaAgreement(Footprints):
    """Do the criteria agree with each other, and with the errors found? Over random subsets of one size, and by input.

    Many random subsets of the inputs, all of one size so that size explains nothing, are measured by every criterion
    and by the errors they contain, as Harel-Canada et al. 2020 and others do; Spearman's correlation says whether
    subsets that cover more also find more. Distinct confusions (a class taken for another) stand for distinct faults.
    By input, the contribution to the coverage of all (its Shapley value) is held against being answered wrongly.

    threshold: of neuron coverage.
    sections: k of k-multisection coverage.
    top: k of top-k neuron coverage and patterns.
    layers: "all" convolutions and linears, "penultimate", names or patterns.
    ranges: the Finding of `ActivationRanges` over the training data.
    subsets: how many to draw.
    size: inputs of each subset; by default a tenth of them.
    seed: of the draws.
    idc: the Finding of `ImportanceDrivenCoverage` over the same inputs, to be compared too.
    lsc: the Finding of `LikelihoodSurpriseCoverage` over them.
    dsc: the Finding of `DistanceSurpriseCoverage` over them.
    """

    outputs = declared.CRITERIA_AGREEMENT

    subsets: int = 300
    size: int | None = None
    seed: int = 0
    idc: Finding | None = None
    lsc: Finding | None = None
    dsc: Finding | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subsets < 4 or (self.size is not None and self.size < 1):
            raise ConfigError(f"expected subsets ≥ 4 and size ≥ 1, got {self.subsets} and {self.size}")

    def finish(self) -> Finding:
        """The correlations, as a table of the measures and as matrices in its order."""
        measured, size = self._measure()
        names, errors = list(measured.subsets), measured.subsets.get("errors")
        middle = np.array([percentile_interval(column) for column in measured.subsets.values()])
        matrix = measured.between_subsets
        columns = {
            "measure": np.array(names),
            "mean": np.array([column.mean() for column in measured.subsets.values()]),
            "low": middle[:, 0],
            "high": middle[:, 1],
            **{f"with_{name}": matrix[:, place] for place, name in enumerate(names)},
        }
        return self.finding(
            summary={
                **({} if errors is None else _with_errors(measured, self.subsets)),
                "subsets": Estimate(self.subsets, about=f"random subsets of {size} inputs each"),
                "inputs": Estimate(len(next(iter(measured.inputs.values()))), about="samples examined"),
            },
            table=columns,
            arrays={"spearman_subsets": matrix, "spearman_inputs": measured.between_inputs},
        )

    def _measure(self) -> tuple[Measured, int]:
        """All measures of the subsets and of the inputs, and the size of the subsets."""
        rows = self.footprints.read()
        order = id_order(rows.ids)
        size = max(1, rows.count // 10) if self.size is None else self.size
        if size > rows.count:
            raise ConfigError(f"size is {size}, and there are {rows.count} inputs: ask for smaller subsets")
        drawn = [order[places] for places in random_subsets(rows.count, size, self.subsets, self.seed)]
        reaches = {**self.reaches(rows), **self._of_others(rows.ids)}
        unsure = {name: np.asarray(rows[name]) for name in UNCERTAINTY if name in rows}
        subsets = {
            **{name: subset_coverage(reach, drawn) for name, reach in reaches.items()},
            **{name: np.array([scores[places].mean() for places in drawn]) for name, scores in unsure.items()},
            **_errors_in(rows, drawn),
        }
        inputs = {
            **{name: reach.shares()[order] for name, reach in reaches.items()},
            **{name: scores[order] for name, scores in unsure.items()},
        }
        return Measured(subsets, inputs, np.asarray(rows["wrong"])[order] if "wrong" in rows else None), size

    def _of_others(self, ids: list[str]) -> dict[str, Reach]:
        """What the inputs reach by criteria that were examined on their own."""
        given = {"idc": (self.idc, "combination"), "lsc": (self.lsc, "bucket"), "dsc": (self.dsc, "bucket")}
        return {
            name: _one_target_each(finding, column, ids)
            for name, (finding, column) in given.items()
            if finding is not None
        }


def _errors_in(rows: RowTable, drawn: list[NDArray[np.int64]]) -> dict[str, Floats]:
    """The number of errors, and of distinct confusions, in each subset; nothing where they are not known."""
    told: dict[str, Floats] = {}
    if "wrong" in rows:
        wrong = np.asarray(rows["wrong"])
        told["errors"] = np.array([wrong[places].sum() for places in drawn], dtype=np.float64)
    if "confusion" in rows:
        kind = np.asarray(rows["confusion"])
        different = [np.unique(own[own >= 0]).size for own in (kind[places] for places in drawn)]
        told["confusions"] = np.array(different, dtype=np.float64)
    return told


def _one_target_each(finding: Finding, column: str, ids: list[str]) -> Reach:
    """The target of each input by a Finding whose table names one, in the order of the ids; −1 stands for none."""
    if finding.table is None:
        raise DataError(f"{finding.name} has no table of inputs; examine again")
    known = dict(zip(finding.table["id"].to_pylist(), finding.table[column].to_pylist(), strict=True))
    if missing := [name for name in ids if name not in known]:
        raise DataError(f"{finding.name} knows nothing of {missing[0]!r}: it was asked about other inputs")
    numbers = np.array([[known[name]] for name in ids], dtype=np.int64)
    return Cells(numbers + 1, np.arange(-1, max(int(numbers.max()) + 1, 1)))


def _measure(name: str) -> str:
    """What a number counts; scores of confidence are turned, so that more is less sure."""
    return f"uncertainty by {name}" if name in UNCERTAINTY else name


def _with_errors(measured: Measured, subsets: int) -> dict[str, Estimate]:
    """How each measure goes with the errors: over the subsets, and input by input."""
    wrong = measured.wrong if measured.wrong is not None else np.zeros(0, dtype=np.bool_)
    found, all_ = int(wrong.sum()), wrong.size
    names = list(measured.subsets)
    told = {"errors": Estimate(found, about="inputs answered wrongly")}
    for name in (name for name in names if name not in ("errors", "confusions")):
        r = float(measured.between_subsets[names.index(name), names.index("errors")])
        about = f"Spearman's, of {_measure(name)} and the errors in a subset"
        if np.isnan(r):
            told[f"{name}_with_errors"] = Estimate(None, about=f"{about}: one of them never changes")
            continue
        told[f"{name}_with_errors"] = interval_estimate(r, correlation_interval(r, subsets), about)
    for name, column in measured.inputs.items() if 0 < found < all_ else ():
        area = auroc(column, wrong)
        interval = auroc_interval(area, found, all_ - found)
        about = f"chance that an input answered wrongly has more {_measure(name)} than one answered rightly (AUROC)"
        told[f"{name}_by_input"] = interval_estimate(area, interval, about)
    return told
