"""How well planted causes of errors are found: rules, clusters of heat maps, classes, pairs, a tree, chance.

    python benchmarks/causes_planted/study.py [--seeds 0 1 2 3 4 5] [--cache FOLDER] [--out FILE]

writes causes_planted.csv beside this script, or to --out, and prints the means: settings were settled on seeds 0 to 2
and judged once on 3 to 5. Of every planted cause the best of the items that a method shows (ten at most; of rules the
confirmed ones) counts, by F1 of its errors and those of the cause, and by how many of its first ten errors have the
cause. `named`: whether its rule has a trait of the cause. Controls: errors shuffled, labels permuted, an untrained net.
"""

import argparse
import csv
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scenarios import SCENARIOS, Planted, PlantedNet, trained
from sklearn.tree import DecisionTreeClassifier

import weakspot.causes.slice_parts as parts
from weakspot import Finding, Plan, Run, Subject, examine
from weakspot.causes import ErrorSlices
from weakspot.causes.room import steps
from weakspot.data.sources import ArraySource, WithMetadata
from weakspot.slices import SliceData, SliceRule, Trait, first_half, ranked_slices

COLUMNS = ("seed", "scenario", "method", "cause", "f1", "precision10", "named", "shown", "pure")
SHOWN = 10


@dataclass(frozen=True)
class Item:
    """What a method shows: the errors it holds, the most typical first, and the traits of its rule."""

    errors: Sequence[str]
    traits: Sequence[str] = ()


@dataclass(frozen=True)
class Examined:
    """One net and its test images."""

    planted: Planted
    subject: Subject
    source: Any
    wrong: dict[str, bool]
    labels: np.ndarray
    predicted: np.ndarray
    ids: list[str] = field(default_factory=list)


def examined(planted: Planted, net: torch.nn.Module, *, labels: np.ndarray | None = None) -> Examined:
    """The answers of a net."""
    images, truth = planted.test
    targets = truth.numpy() if labels is None else labels
    ids = [f"i{number:04d}" for number in range(len(images))]
    source = WithMetadata(ArraySource(images.numpy(), targets, ids=ids), {"id": ids, **planted.metadata})
    with torch.no_grad():
        predicted = torch.cat([net(part).argmax(1) for part in images.split(500)]).numpy()
    subject = Subject(net, classes=planted.classes, scores="logits")
    wrong = dict(zip(ids, (predicted != targets).tolist(), strict=True))
    return Examined(planted, subject, source, wrong, targets, predicted, ids)


@dataclass(frozen=True)
class Answer:
    """The Finding of the rules, and the traits that its rules are asked of, in the order of its ids."""

    finding: Finding
    columns: dict[str, np.ndarray]

    @property
    def confirmed(self) -> int:
        """How many rules are confirmed, causes and confusions."""
        summary = self.finding.summary
        return int(summary["confirmed"].value + summary["confusions"].value)


def asked(one: Examined, *, metadata: bool) -> Answer:
    """The rules of a net, with or without metadata."""
    source = one.source if metadata else ArraySource(one.planted.test[0].numpy(), one.labels, ids=one.ids)
    finding = examine(one.subject, source, [ErrorSlices()])[0]
    measures = dict(zip(finding.arrays["measure_names"].tolist(), finding.arrays["measures"].T, strict=True))
    classes = {"true class": one.labels.astype(str), "predicted class": one.predicted.astype(str)}
    known = {name: np.asarray(column) for name, column in one.planted.metadata.items()}
    return Answer(finding, {**known, **measures, **classes})


def rules(answer: Answer, wrong: dict[str, bool]) -> list[Item]:
    """The confirmed causes."""
    ids, items = answer.finding.arrays["image_id"], []
    for row in [] if answer.finding.table is None else answer.finding.table.to_pylist():
        if row["confirmed"] and row["kind"] == "trait":
            rule = SliceRule.from_json(json.loads(row["conditions"]))
            first = row["incorrect_examples"].split(", ")
            held = ids[rule.holds(answer.columns)].tolist()
            rest = [name for name in held if wrong[name] and name not in first]
            items.append(Item([*first, *rest], [each.trait for each in rule.conditions]))
    return items


def clusters(one: Examined, folder: Path) -> list[Item]:
    """Clusters of heat maps with default options."""
    run = Run.create(folder)
    plan = Plan.of(steps({"replicates": 0, "pictures": 0, "thumbnail": 0, "slices": False}))
    finding = plan.run(one.subject, {"test": one.source}, run)[-1]
    ids, numbers = finding.arrays["image_id"], finding.arrays["image_cluster"]
    distances = finding.arrays["image_distance"]
    items = []
    for number in range(1, min(int(numbers.max(initial=0)), SHOWN) + 1):
        members = np.flatnonzero(numbers == number)
        items.append(Item(ids[members[np.argsort(distances[members], kind="stable")]].tolist()))
    return items


def by_value(one: Examined, values: Sequence[str]) -> list[Item]:
    """Errors by a value of each, the commonest first."""
    groups: dict[str, list[str]] = {}
    for name, value in zip(one.ids, values, strict=True):
        if one.wrong[name]:
            groups.setdefault(value, []).append(name)
    ranked = sorted(groups.values(), key=lambda members: -len(members))
    return [Item(members) for members in ranked[:SHOWN]]


def tree(one: Examined) -> list[Item]:
    """Leaves of a decision tree on metadata and class, by the errors beyond the average."""
    columns = []
    for values in [*one.planted.metadata.values(), [f"class {number}" for number in one.labels.tolist()]]:
        if isinstance(values[0], str):
            columns += [[float(value == name) for value in values] for name in sorted(set(values))]
        else:
            columns.append([float(value) for value in values])
    wrong = np.array([one.wrong[name] for name in one.ids])
    fitted = DecisionTreeClassifier(max_leaf_nodes=12, min_samples_leaf=20, random_state=0)
    leaves = fitted.fit(np.array(columns).T, wrong).apply(np.array(columns).T)
    excess = {leaf: wrong[leaves == leaf].sum() - wrong.mean() * (leaves == leaf).sum() for leaf in np.unique(leaves)}
    ranked = sorted((leaf for leaf in excess if excess[leaf] > 0), key=lambda leaf: -excess[leaf])
    ids = np.array(one.ids)
    return [Item(ids[(leaves == leaf) & wrong].tolist()) for leaf in ranked[:SHOWN]]


def chance(one: Examined, sizes: Sequence[int], seed: int) -> list[Item]:
    """Errors at random, in items of these sizes."""
    rng = np.random.default_rng(seed)
    names = [name for name in one.ids if one.wrong[name]]
    return [Item(rng.permutation(names)[:size].tolist()) for size in sizes]


def scored(one: Examined, items: Sequence[Item], **known: Any) -> Iterator[dict[str, Any]]:
    """A row per planted cause. pure: share of the items of which most errors have a planted cause."""
    ids = np.array(one.ids)
    wrong = np.array([one.wrong[name] for name in one.ids])
    planted = {cause: set(ids[having & wrong].tolist()) for cause, having in one.planted.causes.items()}
    best_shares = [max((len(set(item.errors) & own) / len(item.errors) for own in planted.values()), default=0.0)
                   for item in items if item.errors]  # fmt: skip
    pure = float(np.mean([share >= 0.5 for share in best_shares])) if best_shares else float("nan")
    for cause, own in planted.items():
        f1s = [2 * len(own & set(item.errors)) / max(len(own) + len(item.errors), 1) for item in items]
        place = int(np.argmax(f1s)) if f1s else -1
        first = items[place].errors[:SHOWN] if f1s else []
        named = bool(f1s) and bool(set(items[place].traits) & set(one.planted.naming[cause]))
        yield {
            **known,
            "cause": cause,
            "f1": round(f1s[place], 4) if f1s else 0.0,
            "precision10": round(float(np.mean([name in own for name in first])), 4) if first else 0.0,
            "named": named,
            "shown": len(items),
            "pure": round(pure, 4),
        }


def of_scenario(seed: int, scenario: str, cache: Path | None, folder: Path) -> Iterator[dict[str, Any]]:
    """All methods and controls of one net."""
    planted = SCENARIOS[scenario](seed)
    net = trained(planted, seed, None if cache is None else cache / f"{scenario}-{seed}.pt")
    one = examined(planted, net)
    print(seed, scenario, f"{sum(one.wrong.values())} errors of {len(one.ids)}", flush=True)
    with_metadata, without = asked(one, metadata=True), asked(one, metadata=False)
    found = {
        "rules": rules(with_metadata, one.wrong),
        "rules without metadata": rules(without, one.wrong),
        "heat-map clusters": clusters(one, folder / f"{scenario}-{seed}"),
        "predicted class": by_value(one, [str(number) for number in one.predicted.tolist()]),
        "confusion pair": by_value(one, [f"{a} {b}" for a, b in zip(one.labels, one.predicted, strict=True)]),
        "tree on metadata and class": tree(one),
    }
    found["chance"] = chance(one, [len(item.errors) for item in found["rules"]], seed)
    for method, items in found.items():
        yield from scored(one, items, seed=seed, scenario=scenario, method=method)
    if scenario == "conditions":
        yield from controls(one, seed)


def controls(one: Examined, seed: int) -> Iterator[dict[str, Any]]:
    """How many causes are confirmed where there is none."""
    rng = np.random.default_rng(1000 + seed)
    answer = asked(one, metadata=True)
    permuted = examined(one.planted, one.subject.model, labels=rng.permutation(one.labels))
    torch.manual_seed(seed)
    untrained = examined(one.planted, PlantedNet(one.planted.classes).eval())
    counts = {
        "permuted labels": asked(permuted, metadata=True).confirmed,
        "untrained net": asked(untrained, metadata=True).confirmed,
    }
    wrong = np.array([one.wrong[name] for name in one.ids])
    traits = [_trait(name, column) for name, column in answer.columns.items()]
    labels = one.labels.astype(np.int64)
    for repeat in range(10):
        data = SliceData(rng.permutation(wrong), first_half(one.ids, seed=repeat), labels)
        counts[f"shuffled errors {repeat}"] = sum(each.confirmed for each in ranked_slices(traits, data))
    for control, count in counts.items():
        yield {"seed": seed, "scenario": "control", "method": "rules", "cause": control, "shown": count}


def _trait(name: str, column: np.ndarray) -> Trait:
    source = {"true class": "class", "predicted class": "prediction"}.get(name, "metadata")
    return Trait(name, column, source, {"hue": 360.0, "edge angle": 180.0}.get(name))  # type: ignore[arg-type]


def means(rows: Sequence[dict[str, Any]]) -> None:
    """Print the means over causes by scenario and method, of both groups of seeds."""
    for group, seeds in (("settled", (0, 1, 2)), ("judged", (3, 4, 5))):
        own = [row for row in rows if int(row["seed"]) in seeds]
        for scenario in dict.fromkeys(row["scenario"] for row in own):
            for method in dict.fromkeys(row["method"] for row in own if row["scenario"] == scenario):
                chosen = [row for row in own if row["scenario"] == scenario and row["method"] == method]
                if scenario == "control":
                    kinds: dict[str, list[int]] = {}
                    for row in chosen:
                        kinds.setdefault(row["cause"].rstrip(" 0123456789"), []).append(int(row["shown"]))
                    told = ", ".join(f"{kind} {sum(c > 0 for c in n)}/{len(n)} with any" for kind, n in kinds.items())
                    print(f"{group:8} {scenario:12} {told}")
                    continue
                value = {key: np.nanmean([float(row[key]) for row in chosen]) for key in ("f1", "precision10", "pure")}
                named = np.mean([str(row["named"]) == "True" for row in chosen])
                recall = np.mean([float(row["f1"]) >= 0.5 for row in chosen])
                shown = np.mean([float(row["shown"]) for row in chosen])
                first = f"f1 {value['f1']:.2f}  p@10 {value['precision10']:.2f}  found {recall:.2f}"
                second = f"pure {value['pure']:.2f}  named {named:.2f}  shown {shown:.1f}"
                print(f"{group:8} {scenario:12} {method:28} {first}  {second}")


def write(rows: Sequence[dict[str, Any]], file: Path) -> None:
    """All rows so far, as CSV."""
    with file.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, nargs="+", default=range(6))
    options.add_argument("--scenarios", nargs="+", default=list(SCENARIOS))
    options.add_argument("--cache", type=Path)
    options.add_argument("--out", type=Path, default=Path(__file__).with_name("causes_planted.csv"))
    given = options.parse_args()
    parts.SHOWN = SHOWN
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in given.seeds:
            for scenario in given.scenarios:
                rows += of_scenario(seed, scenario, given.cache, Path(folder))
                write(rows, given.out)
    means(rows)


if __name__ == "__main__":
    main()
