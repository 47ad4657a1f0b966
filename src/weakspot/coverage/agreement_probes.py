"""Do the criteria agree, with each other and with the errors that a test set finds? Coverage alone is no verdict.

Published work finds little correlation between coverage and the faults that a test set reveals once its size is held
fixed (Harel-Canada et al. 2020, `harelcanada2020`). So it is measured here, for the model and the data at hand.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.rows import RowTable, id_order
from weakspot.coverage import finding_outputs as declared
from weakspot.coverage.device_counting import coverage_of, shares_of
from weakspot.coverage.footprint_probes import Footprints
from weakspot.coverage.metrics_agreement import Floats, Measured, drawn_inputs, random_subsets
from weakspot.coverage.metrics_confidence import UNCERTAINTY
from weakspot.coverage.reached_targets import Cells, Reach
from weakspot.estimates import auroc_estimate, interval_estimate
from weakspot.statistics import correlation_interval, percentile_interval


class CriteriaAgreement(Footprints):
    """Do the criteria agree with each other, and with the errors found? Over random subsets of one size, and by input.

    Many random subsets of the inputs, all of one size so that size explains nothing, are measured by every criterion
    and by the errors they contain, as Harel-Canada et al. 2020 and others do; Spearman's correlation says whether
    subsets that cover more also find more. Distinct confusions (a class taken for another) stand for distinct faults.
    By input, the contribution to the coverage of all (its Shapley value) is compared with being predicted incorrectly.

    threshold: of neuron coverage.
    sections: k of k-multisection coverage.
    top: k of top-k neuron coverage and patterns.
    layers: "all" convolutions and linears, "penultimate", names or patterns.
    side: "activated", the values after the activation that follows the layer, as the papers define it; or "output",
        those before it.
    ranges: the Finding of `ActivationRanges` over the training data.
    subsets: how many to draw.
    size: inputs of each subset; by default a tenth of those examined.
    most_inputs: examine at most so many inputs, drawn at random; None for all. So the cost does not grow with the data.
    seed: of the draws.
    idc: the Finding of `ImportanceDrivenCoverage` over the same inputs, to be compared too.
    lsc: the Finding of `LikelihoodSurpriseCoverage` over them.
    dsc: the Finding of `DistanceSurpriseCoverage` over them.
    """

    outputs = declared.CRITERIA_AGREEMENT
    by_group = ("*_by_input", "*_with_errors", "low", "high")

    subsets: int = 300
    size: int | None = None
    most_inputs: int | None = 1000
    seed: int = 0
    idc: Finding | None = None
    lsc: Finding | None = None
    dsc: Finding | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subsets < 4 or (self.size is not None and self.size < 1):
            raise ConfigError(f"expected subsets ≥ 4 and size ≥ 1, got {self.subsets} and {self.size}")
        if self.most_inputs is not None and self.most_inputs < 2:
            raise ConfigError(f"most_inputs is {self.most_inputs}: expected 2 or more, or null for all inputs")

    def wants(self, ids: Sequence[str]) -> list[str] | None:
        """All inputs, or those drawn where there are too many."""
        if self.most_inputs is None or len(self.setting.ids) <= self.most_inputs:
            return None
        drawn = self._drawn()
        return [name for name in ids if name in drawn]

    def _drawn(self) -> frozenset[str]:
        """The inputs to examine, drawn once for all batches of a source."""
        if self.__dict__.get("_drawn_from") is not self.setting.ids:
            self._names = frozenset(drawn_inputs(self.setting.ids, self.most_inputs or 0, self.seed))
            self._drawn_from = self.setting.ids
        return self._names

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
            **{f"with_{name}": matrix[:, column] for column, name in enumerate(names)},
        }
        return self.finding(
            summary={
                **({} if errors is None else _with_errors(measured, self.subsets, self._groups())),
                "subsets": Estimate(self.subsets, about=f"random subsets of {size} inputs each"),
                "inputs": Estimate(len(next(iter(measured.inputs.values()))), about=self._examined()),
            },
            table=columns,
            arrays={"spearman_subsets": matrix, "spearman_inputs": measured.between_inputs},
        )

    def _groups(self) -> np.ndarray | None:
        """What each input belongs to, in the order of the ids."""
        ids = self.footprints.read().ids
        return self.setting.groups_of([ids[place] for place in id_order(ids)])

    def _examined(self) -> str:
        everything = len(self.setting.ids)
        if self.most_inputs is None or everything <= self.most_inputs:
            return "samples examined"
        return f"samples examined, drawn at random from {everything} (most_inputs)"

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
            **{name: coverage_of(reach, drawn, self.setting.here) for name, reach in reaches.items()},
            **{name: np.array([scores[places].mean() for places in drawn]) for name, scores in unsure.items()},
            **_errors_in(rows, drawn),
        }
        inputs = {
            **{name: shares_of(reach, order, self.setting.here) for name, reach in reaches.items()},
            **{name: scores[order] for name, scores in unsure.items()},
        }
        return Measured(subsets, inputs, np.asarray(rows["wrong"])[order] if "wrong" in rows else None), size

    def _of_others(self, ids: list[str]) -> dict[str, Reach]:
        """What the inputs reach by criteria that were examined on their own."""
        others = {"idc": (self.idc, "combination"), "lsc": (self.lsc, "bucket"), "dsc": (self.dsc, "bucket")}
        return {
            name: _one_target_each(finding, column, ids)
            for name, (finding, column) in others.items()
            if finding is not None
        }


def _errors_in(rows: RowTable, drawn: list[NDArray[np.int64]]) -> dict[str, Floats]:
    """The number of errors, and of distinct confusions, in each subset; nothing where they are not known."""
    errors: dict[str, Floats] = {}
    if "wrong" in rows:
        wrong = np.asarray(rows["wrong"])
        errors["errors"] = np.array([wrong[places].sum() for places in drawn], dtype=np.float64)
    if "confusion" in rows:
        kind = np.asarray(rows["confusion"])
        different = [np.unique(kinds[kinds >= 0]).size for kinds in (kind[places] for places in drawn)]
        errors["confusions"] = np.array(different, dtype=np.float64)
    return errors


def _one_target_each(finding: Finding, column: str, ids: list[str]) -> Reach:
    """The target of each input by a Finding whose table names one, in the order of the ids; −1 stands for none."""
    if finding.table is None:
        raise DataError(f"{finding.name} has no table of inputs; examine again")
    target = dict(zip(finding.table["id"].to_pylist(), finding.table[column].to_pylist(), strict=True))
    if missing := [name for name in ids if name not in target]:
        raise DataError(f"{finding.name} knows nothing of {missing[0]!r}: it was asked about other inputs")
    numbers = np.array([[target[name]] for name in ids], dtype=np.int64)
    return Cells(numbers + 1, max(int(numbers.max()) + 1, 1))


def _measure(name: str) -> str:
    """What a number counts; scores of confidence are turned, so that more is less sure."""
    return f"uncertainty by {name}" if name in UNCERTAINTY else name


def _with_errors(measured: Measured, subsets: int, groups: np.ndarray | None) -> dict[str, Estimate]:
    """How each measure goes with the errors: over the subsets, and input by input."""
    wrong = measured.wrong if measured.wrong is not None else np.zeros(0, dtype=np.bool_)
    errors, all_ = int(wrong.sum()), wrong.size
    names = list(measured.subsets)
    summary = {"errors": Estimate(errors, about="inputs predicted incorrectly")}
    for name in (name for name in names if name not in ("errors", "confusions")):
        r = float(measured.between_subsets[names.index(name), names.index("errors")])
        about = f"Spearman's correlation of {_measure(name)} and the number of errors in random subsets"
        if np.isnan(r):
            summary[f"{name}_with_errors"] = Estimate(None, about=f"{about}: one of them never changes")
            continue
        summary[f"{name}_with_errors"] = interval_estimate(r, correlation_interval(r, subsets), about)
    for name, column in measured.inputs.items() if 0 < errors < all_ else ():
        about = f"chance that an incorrectly predicted input has more {_measure(name)} than a correct one (AUROC)"
        summary[f"{name}_by_input"] = auroc_estimate(column, wrong, about, groups=groups)
    return summary
