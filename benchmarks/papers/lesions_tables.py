"""What the two studies of lesions share: fitting lesion models, and the tables of Lambert et al. 2022 over seeds."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import write

from weakspot import Finding
from weakspot.lesions.analysis import GRID, mean_curve, scored_fold, scores_finding
from weakspot.lesions.baselines import METASEG, PAPER_DIRECT
from weakspot.lesions.gcn import Learning, LesionGraph, train_gcn
from weakspot.lesions.lesion_model import fit_lesion_model, uncertainties
from weakspot.lesions.lesion_set import LesionSet
from weakspot.lesions.methods import PAPER_METHODS as METHODS
from weakspot.lesions.metrics_evaluation import Evaluation, ScoredFold, accuracy_confidence, evaluate
from weakspot.statistics.intervals import Interval, percentile_interval

GRAPHS = ("gcn_classification", "gcn_regression")
BASELINES = tuple(method for method in METHODS if method not in GRAPHS)
EXTRA = ("no_edges", "node_means")
"""Beyond the protocol, to see what the graph adds: its network without edges, and logistic regression on node means."""
VALIDATION = "areas on the lesions learnt from"


def fit_and_score(
    learnt: LesionSet,
    cut: Mapping[str, Finding],
    *,
    seed: int,
    epochs: int = 60,
    extra: bool = True,
    device: str = "cpu",
) -> dict[str, Finding]:
    """A lesion model with this seed, and what all methods say of other lesions.

    The calibrated method is the cheapest, since areas need no calibration, and for it graph networks would be trained
    five times more. Each Finding also holds every method's area on the lesions learnt from, and the scores of `EXTRA`.
    """
    learning = Learning(epochs=epochs, seed=seed, device=device)
    model = fit_lesion_model(learnt, learnt.case, method="metaseg_classification", learning=learning).model
    wrong = learnt.false_positive
    known = {name: accuracy_confidence(own, wrong).area for name, own in uncertainties(model.scores(learnt)).items()}
    others = [without_edges(learnt, learning), node_means(learnt)] if extra else []
    found = {}
    for name, finding in cut.items():
        scored = scores_finding(finding, model, replicates=1)
        own = LesionSet.of(finding)
        arrays = {key: score(own) for key, score in zip(EXTRA, others, strict=False)}
        scored = replace(scored, arrays={**scored.arrays, **arrays})
        scored.provenance[VALIDATION] = known
        scored.provenance["learnt"] = {"true": int((~wrong).sum()), "false": int(wrong.sum())}
        found[name] = scored
    return found


def without_edges(learnt: LesionSet, learning: Learning) -> Callable[[LesionSet], np.ndarray]:
    """The graph network for classification with no node joined to another: the same layers, node by node."""
    net = train_gcn([edgeless(graph) for graph in learnt.graphs], learnt.false_positive, "classification", learning)
    return lambda lesions: net.outputs([edgeless(graph) for graph in lesions.graphs])


def edgeless(graph: LesionGraph) -> LesionGraph:
    """The nodes of a lesion, each joined to itself alone."""
    count = len(graph.features)
    return LesionGraph(graph.features, torch.arange(1, count + 1), torch.arange(count), torch.ones(count))


def node_means(learnt: LesionSet) -> Callable[[LesionSet], np.ndarray]:
    """Logistic regression on the mean and spread of each node feature over a lesion, and on the log of its size."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    model.fit(pooled(learnt), learnt.false_positive)
    return lambda lesions: model.decision_function(pooled(lesions))


def pooled(lesions: LesionSet) -> np.ndarray:
    """Mean and standard deviation of the node features of each lesion, and log voxels: (lesions, 2 n + 1)."""
    starts, sizes = lesions.nodes.starts[:-1], np.diff(lesions.nodes.starts)[:, None]
    values = lesions.features.astype(np.float64)
    mean = np.add.reduceat(values, starts) / sizes
    square = np.add.reduceat(values**2, starts) / sizes
    size = np.log(np.asarray(lesions.columns["voxels"], dtype=np.float64))[:, None]
    return np.hstack([mean, np.sqrt(np.maximum(square - mean**2, 0)), size])


def fold_of(finding: Finding) -> ScoredFold:
    """The scored lesions of a fold, those of the extra methods too."""
    fold = scored_fold(finding, None)
    arrays = {name: np.asarray(finding.arrays[name]) for name in EXTRA if name in finding.arrays}
    return replace(fold, uncertainty={**fold.uncertainty, **arrays})


@dataclass(frozen=True)
class OverSeeds:
    """Evaluations of one study with several seeds of the lesion model; all resample the same patients."""

    seeds: Sequence[Evaluation]
    folds: Sequence[Sequence[ScoredFold]]

    @classmethod
    def of(cls, runs: Sequence[Sequence[ScoredFold]], *, replicates: int = 1000) -> "OverSeeds":
        return cls([evaluate(folds, replicates=replicates) for folds in runs], runs)

    @property
    def methods(self) -> list[str]:
        return list(self.seeds[0].area)

    def area(self, method: str) -> float:
        return float(np.mean([own.area[method] for own in self.seeds]))

    def spread(self, method: str, less: str | None = None) -> float:
        """Standard deviation over the seeds of a method's area, or of what it has more than another's."""
        own = [seed.area[method] - (seed.area[less] if less else 0.0) for seed in self.seeds]
        return float(np.std(own, ddof=1)) if len(own) > 1 else 0.0

    def replicates(self, method: str) -> np.ndarray:
        return np.mean([own.replicates[method] for own in self.seeds], axis=0)

    def interval(self, method: str) -> Interval:
        return percentile_interval(self.replicates(method))

    def per_fold(self, method: str) -> np.ndarray:
        return np.mean([own.per_fold[method] for own in self.seeds], axis=0)

    def spearman(self, method: str) -> float:
        return float(np.mean([own.spearman[method] for own in self.seeds]))

    def best_baseline(self) -> str:
        return max(BASELINES, key=self.area)

    def curve(self, method: str) -> np.ndarray:
        return np.mean([mean_curve(folds, method) for folds in self.folds], axis=0)


def method_rows(study: OverSeeds) -> list[dict[str, Any]]:
    """Table 2: a row per method."""
    rows = []
    for method in study.methods:
        low, high = study.interval(method)
        row = {"method": method, "area": study.area(method), "spread_over_seeds": study.spread(method)}
        row |= {"low": float(low), "high": float(high), "spearman_with_size": study.spearman(method)}
        rows.append(row | {f"area_fold_{k}": area for k, area in enumerate(study.per_fold(method))})
    return rows


def difference_rows(study: OverSeeds, chosen: Mapping[str, str]) -> list[dict[str, Any]]:
    """Graph networks less baselines: over seeds, over resampled patients, fold by fold, an interval over the folds.

    chosen: why a baseline is compared with, and which one it is.
    """
    return [
        {"graph": graph, "baseline": baseline, "chosen": reason, **difference(study, graph, baseline)}
        for graph in GRAPHS
        for reason, baseline in chosen.items()
    ]


def difference(study: OverSeeds, one: str, other: str) -> dict[str, Any]:
    """One method less another, with the interval over resampled patients, and half the width of that over the folds."""
    apart = study.per_fold(one) - study.per_fold(other)
    low, high = percentile_interval(study.replicates(one) - study.replicates(other))
    wide = float(stats.t.ppf(0.975, len(apart) - 1) * apart.std(ddof=1) / np.sqrt(len(apart)))
    row = {"difference": float(apart.mean()), "spread_over_seeds": study.spread(one, less=other)}
    row |= {"low": float(low), "high": float(high), "over_folds": wide, "verdict": verdict(low, high)}
    return row | {f"fold_{k}": float(own) for k, own in enumerate(apart)}


def claim_rows(study: OverSeeds) -> list[dict[str, Any]]:
    """What else the paper says of its Table 2, each as a difference that is above 0 if it is so."""
    simple, metaseg = (max(own, key=study.area) for own in (PAPER_DIRECT, METASEG))
    least = min((method for method in METHODS if method != "size"), key=study.area)
    claims = [("means beat log-sums", f"{own}_mean", f"{own}_logsum") for own in ("entropy", "variance", "pcs")]
    claims += [("size is the worst", least, "size"), ("MetaSeg beats no simpler score", simple, metaseg)]
    claims += [("classification beats regression", *GRAPHS)]
    return [
        {"claim": name, "method": one, "less": other, **difference(study, one, other)} for name, one, other in claims
    ]


def verdict(low: float, high: float) -> str:
    """What the protocol says of an interval."""
    return "confirmed" if low > 0 else "contradicted" if high < 0 else "not shown"


def curve_rows(study: OverSeeds, *, every: int = 5) -> list[dict[str, Any]]:
    """Figure 2 as points: the share of true positives kept, by the share of false positives kept."""
    curves = {method: study.curve(method) for method in study.methods}
    grid = np.linspace(0, 1, GRID)
    return [
        {"false_positives": float(grid[place]), **{method: float(own[place]) for method, own in curves.items()}}
        for place in range(0, GRID, every)
    ]


def baseline_on_validation(scored: Sequence[Finding]) -> str:
    """The baseline with the largest mean area on the lesions that the models learnt from."""
    areas = [finding.provenance[VALIDATION] for finding in scored]
    return max(BASELINES, key=lambda baseline: float(np.mean([own[baseline] for own in areas])))


def distinct_places(scored: Finding, *, apart: float = 5.0) -> int:
    """How many places the false positives of a fold have, those within `apart` voxels over all its cases being one."""
    table = scored.table
    wrong = ~table["true_positive"].to_numpy(zero_copy_only=False).astype(bool)
    points = np.stack([table[axis].to_numpy()[wrong] for axis in "zyx"], 1)
    if not len(points):
        return 0
    pairs = cKDTree(points).query_pairs(apart, output_type="ndarray")
    links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(points), len(points)))
    return int(connected_components(links, directed=False)[0])


def fold_rows(scored: Sequence[Finding]) -> list[dict[str, Any]]:
    """Table 1: a row per fold."""
    rows = []
    for number, finding in enumerate(scored):
        told, learnt = finding.summary, finding.provenance["learnt"]
        row = {"fold": number, "cases": int(told["cases"].value)}
        row |= {"dice": told["dice"].value, "dice_low": told["dice"].low, "dice_high": told["dice"].high}
        row |= {name: int(told[name].value) for name in ("true_positives", "false_positives", "missed_lesions")}
        row |= {"false_places": distinct_places(finding)}
        rows.append(row | {f"learnt_{kind}": learnt[kind] for kind in ("true", "false")})
    return rows


def write_studies(stem: Path, studies: Sequence[tuple[Mapping[str, Any], Sequence[Sequence[Finding]]]]) -> None:
    """Write STEM.csv, STEM_folds.csv, STEM_differences.csv, STEM_claims.csv and STEM_curves.csv.

    studies: what is known of each, which begins its rows, and its scored lesions by seed, then by fold.
    """
    parts: dict[str, list[dict[str, Any]]] = {"": [], "_folds": [], "_differences": [], "_claims": [], "_curves": []}
    for known, scored in studies:
        told = {**known, "model_seeds": len(scored)}
        study = OverSeeds.of([[fold_of(finding) for finding in folds] for folds in scored])
        extra = {name: name for name in EXTRA if name in study.methods}
        baselines = {"best on test": study.best_baseline(), "best on validation": baseline_on_validation(scored[0])}
        found = {
            "": method_rows(study),
            "_folds": fold_rows(scored[0]),
            "_differences": difference_rows(study, {**baselines, "size": "size", **extra}),
            "_claims": claim_rows(study),
            "_curves": curve_rows(study),
        }
        for ending, rows in found.items():
            parts[ending] += [{**told, **rounded(row)} for row in rows]
    for ending, rows in parts.items():
        write(stem.with_name(f"{stem.name}{ending}.csv"), rows)


def rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}


def load_scores(folder: Path, pattern: str, seeds: Sequence[int], folds: int) -> list[list[Finding]]:
    """Findings by seed and fold, of those seeds that all folds have; `pattern` names their folders."""
    paths = [[folder / pattern.format(fold=fold, seed=seed) for fold in range(folds)] for seed in seeds]
    return [[Finding.load(path) for path in own] for own in paths if all(path.exists() for path in own)]


def device_named(folder: Path) -> str:
    """The machine that the stages before wrote down."""
    return str(json.loads((folder / "machine.json").read_text())["machine"])
