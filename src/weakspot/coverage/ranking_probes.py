"""Which inputs to add next."""

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Rows
from weakspot.core.rows import id_rank
from weakspot.core.taps import Tap
from weakspot.coverage import finding_outputs as declared
from weakspot.coverage.counting import saturation_sizes
from weakspot.coverage.footprint_probes import Footprints
from weakspot.coverage.metrics_confidence import UNCERTAINTY
from weakspot.coverage.metrics_diversity import USUAL_BUDGET, diverse_order
from weakspot.coverage.metrics_ranking import Greedy, errors_found, greedy_order, random_spread, score_order
from weakspot.coverage.reached_targets import Places

FEATURES = Tap("penultimate")
"""Where inputs that look alike to the model lie near each other."""


class NextInputs(Footprints):
    """Which inputs to add next: ranked by the new coverage each brings, and by how unsure the model is of it.

    Greedy by neuron, k-multisection, boundary, strong and top-k coverage, each beyond what is covered already, beside
    max-softmax, margin, entropy and DeepGini (Feng et al. 2020), and beside "diverse": by DeepGini times the distance
    of the features to those chosen before, so that not many of a kind come first. Where the inputs have labels, how
    early each order meets the errors, and how many kinds of them (a class taken for another) its beginning holds.

    threshold: of neuron coverage.
    sections: k of k-multisection coverage.
    top: k of top-k neuron coverage.
    layers: "all" convolutions and linears, "penultimate", names or patterns.
    side: "activated", the values after the activation that follows the layer, as the papers define it; or "output",
        those before it.
    ranges: the Finding of `ActivationRanges` over the training data.
    covered_neurons: the Finding of `NeuronCoverage` over the inputs there are already; none to begin with nothing.
    covered_sections: the Finding of `KMultisection` over them.
    covered_leaders: the Finding of `TopNeurons` over them.
    budget: list the inputs among the first so many of any ranking; by default all.
    """

    outputs = declared.NEXT_INPUTS
    by_group = ("apfd_random",)

    covered_neurons: Finding | None = None
    covered_sections: Finding | None = None
    covered_leaders: Finding | None = None
    budget: int | None = None

    features = Rows()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget is not None and self.budget < 1:
            raise ConfigError(f"budget is {self.budget}: expected 1 or more")

    @property
    def needs(self) -> Needs:
        """The neurons that criteria count, and the features by which inputs differ."""
        return Needs(taps=(self.tap, FEATURES))

    def observe(self, seen: Observation) -> None:
        """Keep the footprints, and the features where there is an uncertainty to weigh them by."""
        super().observe(seen)
        if self._unsure(seen):
            self.features.append(seen.ids, values=seen.channels(FEATURES).mean.float())

    def finish(self) -> Finding:
        """Each input's place in every order; with labels, which order finds the errors first."""
        rows = self.footprints.read()
        rank = id_rank(rows.ids)
        reaches, covered = self.reaches(rows), self._covered()
        greedy = {name: greedy_order(reaches[name], covered=covered.get(name), rank=rank) for name in COVERAGE}
        orders = {name: ranking.order for name, ranking in greedy.items()}
        orders |= {name: score_order(rows[name], rank=rank) for name in UNCERTAINTY if name in rows}
        if "deep_gini" in rows:
            values = self.features.read()["values"]
            orders["diverse"] = diverse_order(rows["deep_gini"], values, budget=self.budget, rank=rank)
        ranks = {name: _places(order) for name, order in orders.items()}
        shown = orders.get("deep_gini", orders["kmnc"])
        if self.budget is not None:
            shown = shown[np.min([places[shown] for places in ranks.values()], axis=0) < self.budget]
        columns = {f"place_{name}": places[shown] + 1 for name, places in ranks.items()}
        brings = {f"new_{name}": ranking.brings[ranks[name]][shown] for name, ranking in greedy.items()}
        unsure = {name: np.asarray(rows[name])[shown] for name in UNCERTAINTY if name in rows}
        correct = {"correct": ~np.asarray(rows["wrong"])[shown]} if "wrong" in rows else {}
        summary, arrays = _against_errors(orders, np.asarray(rows["wrong"])) if "wrong" in rows else ({}, {})
        if "confusion" in rows:
            summary |= _kinds_found(orders, np.asarray(rows["confusion"]), self.budget)
        adding = {
            f"adding_{name}": Estimate(
                int((ranking.brings > 0).sum()),
                about=f"inputs that together give all the {COVERAGE[name]} that can be gained",
            )
            for name, ranking in greedy.items()
        }
        return self.finding(
            summary={**adding, **summary, "inputs": Estimate(rows.count, about="samples ranked")},
            table={"id": np.asarray(rows.ids)[shown], **columns, **brings, **unsure, **correct},
            arrays={**arrays, "brings_size": saturation_sizes(rows.count), **_gains(greedy, rows.count)},
        )

    def _covered(self) -> dict[str, np.ndarray]:
        """What is covered already, by criterion."""
        covered: dict[str, np.ndarray] = {}
        if self.covered_neurons is not None:
            covered["nc"] = self.covered_neurons.arrays["counts"] > 0
        if self.covered_sections is not None:
            beyond = self.covered_sections.arrays["beyond"] > 0
            covered |= {"kmnc": self.covered_sections.arrays["counts"] > 0, "nbc": beyond, "snac": beyond[:, 1]}
        if self.covered_leaders is not None:
            covered["tknc"] = self.covered_leaders.arrays["counts"] > 0
        return covered


COVERAGE = {
    "nc": "neuron coverage",
    "kmnc": "k-multisection coverage",
    "nbc": "boundary coverage",
    "snac": "strong activation coverage",
    "tknc": "top-k neuron coverage",
}
"""The criteria that inputs are chosen by, in words."""


def _places(order: Places) -> Places:
    """Each input's place in an order."""
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    return places


def _kinds_found(orders: dict[str, Places], confusion: NDArray[np.int64], budget: int | None) -> dict[str, Estimate]:
    """How many kinds of errors the first inputs of each order hold: classes taken for others."""
    first = min(budget or USUAL_BUDGET, confusion.size)
    about = f"kinds of errors, a class taken for another, among the first {first} of this ranking"
    kinds = {name: np.unique(confusion[order[:first]]) for name, order in orders.items()}
    return {f"kinds_{name}": Estimate(int((found >= 0).sum()), about=about) for name, found in kinds.items()}


def _gains(greedy: dict[str, Greedy], inputs: int) -> dict[str, np.ndarray]:
    """New targets after so many inputs were added, by criterion."""
    return {
        f"gained_{name}": np.cumsum(ranking.brings)[saturation_sizes(inputs) - 1] for name, ranking in greedy.items()
    }


def _against_errors(
    orders: dict[str, Places], wrong: NDArray[np.bool_]
) -> tuple[dict[str, Estimate], dict[str, np.ndarray]]:
    """How early each order meets the errors: APFD with its interval, and the curve, beside a random order's."""
    count, inputs = int(wrong.sum()), wrong.size
    summary = {"errors": Estimate(count, about="inputs predicted incorrectly")}
    if not count:
        return summary, {}
    sizes = saturation_sizes(inputs)
    spread, by_order = (
        random_spread(inputs, count),
        {name: errors_found(order, wrong) for name, order in orders.items()},
    )
    about = "how early the errors come in this order (APFD): 1 if first, ½ if at random"
    for name, errors in by_order.items():
        summary[f"apfd_{name}"] = Estimate(errors.apfd, errors.low, errors.high, errors.confidence, about)
    summary["apfd_random"] = Estimate(0.5, 0.5 - spread, 0.5 + spread, 0.95, "where 95 % of random orders lie")
    curves = {f"found_{name}": errors.curve.found_share[sizes] for name, errors in by_order.items()}
    return summary, {"inspected": sizes, **curves, "found_random": sizes / inputs}
