"""Groups by several columns of the metadata: where the model is worse than for everybody else."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from weakspot.classes.gap_outputs import GROUP_GAPS
from weakspot.classes.metrics_gaps import MEASURES, Gaps, Intersections, group_gaps, intersections
from weakspot.core.class_names import named_classes
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import RowTable, id_order
from weakspot.data.text_rows import decoded, encoded
from weakspot.estimates import interval_estimate, share_estimate
from weakspot.slices import Trait
from weakspot.statistics import Interval


class GroupGaps(Probe):
    """Gaps between groups and all other inputs: of accuracy, and of each class's true and false positive rates.

    Groups are made by single columns of the metadata and by several together, such as "age < 30 and light = night"; a
    gap of the rates is what equalised odds forbid (Hardt et al. 2016). The intervals hold together for all gaps that
    were looked at (Bonferroni), as intersections are many and the worst of many looks bad by chance. Where inputs
    belong together, such as frames of a film, they go by these.

    columns: of the metadata; by default all of them.
    depth: how many columns may make a group together.
    least: how many inputs a gap must be about, in the group and among the others.
    confidence: with which all the intervals hold together.
    """

    tasks = ("classification",)
    outputs = GROUP_GAPS
    by_group = ("largest_gap", "low", "high")

    columns: tuple[str, ...] = ()
    depth: int = 2
    least: int = 30
    confidence: float = 0.95

    samples = Rows()

    def __post_init__(self) -> None:
        for name in ("depth", "least"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}: expected 1 or more")
        if not 0 < self.confidence < 1:
            raise ConfigError(f"confidence is {self.confidence}: expected a number between 0 and 1, such as 0.95")

    def observe(self, seen: Observation) -> None:
        """Keep what is known of each input, its prediction and its target."""
        lost = [name for name in self.columns if name not in seen.metadata]
        if lost:
            have = ", ".join(map(repr, seen.metadata)) or "none at all"
            raise ConfigError(f"the metadata have no column {lost[0]!r}; there is {have}: name one of them")
        known = {f"known_{name}": _kept(seen.metadata[name]) for name in self.columns or tuple(sorted(seen.metadata))}
        self.samples.append(seen.ids, prediction=seen.predicted, target=seen.targets.long(), **known)

    def finish(self) -> Finding:
        """A row per group and measure, the surest gaps to the group's disadvantage first."""
        rows = self.samples.read()
        order = id_order(rows.ids)
        predicted, target = (np.asarray(rows[name])[order].astype(np.int64) for name in ("prediction", "target"))
        groups = intersections(_traits(rows, order), depth=self.depth, least=self.least)
        classes = int(max(predicted.max(), target.max())) + 1
        belongs = self.setting.groups_of(rows.ids)
        gaps = group_gaps(
            groups.members,
            predicted,
            target,
            classes,
            least=self.least,
            confidence=self.confidence,
            belongs=None if belongs is None else belongs[order],
        )
        sure = gaps.low > 0
        numbers = {
            "sure_gaps": Estimate(int(sure.sum())),
            "groups": Estimate(len(groups.rules)),
            "looks": Estimate(len(gaps.group)),
            "inputs": Estimate(len(order)),
        }
        if not len(gaps.group):
            return self.finding(summary=numbers)
        ranked = np.lexsort((np.arange(len(sure)), -gaps.difference, -gaps.low))
        return self.finding(
            summary={**self._worst(groups, gaps, ranked), **numbers},
            table=self._columns(groups, gaps, ranked),
        )

    def _worst(self, groups: Intersections, gaps: Gaps, ranked: np.ndarray) -> dict[str, Estimate]:
        """The surest gap, and the group of the lowest accuracy, at an interval that knows of all groups."""
        first, accuracy = ranked[0], gaps.measure == 0
        own, hits, trials = gaps.group[accuracy], gaps.hits[accuracy], gaps.trials[accuracy]
        lowest = int(np.argmin(hits / trials))
        name = groups.rules[own[lowest]].text
        each = 1 - (1 - self.confidence) / len(own)
        about = f"{MEASURES[gaps.measure[first]]} of {groups.rules[gaps.group[first]].text}"
        ends = Interval(gaps.low[first], gaps.high[first])
        worst = share_estimate(int(hits[lowest]), int(trials[lowest]), f"of {name}", confidence=each)
        largest = max(float(gaps.difference[first]), 0.0)
        return {
            "largest_gap": interval_estimate(largest, ends, about, confidence=self.confidence),
            "worst_group_accuracy": Estimate(worst.value, worst.low, worst.high, self.confidence, worst.about),
            "worst_group": Estimate(name),
        }

    def _columns(self, groups: Intersections, gaps: Gaps, ranked: np.ndarray) -> dict[str, np.ndarray]:
        names = np.array([rule.text for rule in groups.rules])
        classes = named_classes(np.maximum(gaps.label, 0), self.setting.classes or ())
        table = {
            "group": names[gaps.group],
            "measure": np.array(MEASURES)[gaps.measure],
            "class": np.where(gaps.label < 0, "", classes),
            "rate": gaps.hits / gaps.trials,
            "rate_of_others": gaps.other_hits / gaps.other_trials,
            "gap": gaps.difference,
            "low": gaps.low,
            "high": gaps.high,
            "sure": gaps.low > 0,
            "images": gaps.trials,
            "images_of_others": gaps.other_trials,
        }
        return {name: values[ranked] for name, values in table.items()}


def _kept(column: np.ndarray) -> np.ndarray:
    return column.astype(np.float64) if column.dtype.kind in "biuf" else encoded(column)


def _traits(rows: RowTable, order: np.ndarray) -> list[Trait]:
    columns = {name.removeprefix("known_"): rows[name] for name in rows if name.startswith("known_")}
    return [
        Trait(name, (decoded(column) if column.dtype == np.uint8 else np.asarray(column))[order])
        for name, column in columns.items()
    ]


def gap_options(groups: Any) -> dict[str, Any] | None:
    """Options of `GroupGaps` where the room's option `groups` asks for several columns; None where it names one."""
    if isinstance(groups, str):
        return None
    if isinstance(groups, Mapping):
        return {name: tuple(value) if isinstance(value, list) else value for name, value in groups.items()}
    if isinstance(groups, list | tuple) and all(isinstance(name, str) for name in groups):
        return {"columns": tuple(groups)}
    raise ConfigError(f"groups is {groups!r}: expected a column, a list of columns, or {{columns: […], least: 30}}")
