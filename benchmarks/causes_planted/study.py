"""How well planted causes of errors are found: the ranked causes of weakspot against eight rivals and chance.

    python benchmarks/causes_planted/study.py [--seeds 0 1 2 3 4 5] [--cache FOLDER] [--workers N] [--out FILE]

writes causes_planted.csv beside this script, or to --out, and prints the means. Settings were settled on seeds 0 to 2
and judged on 3 to 5; scenarios of `ASIDE` were kept aside for the first judging, those of `ASIDE_LATER` for the second.
Of every planted cause the best of the items that a method shows counts (ten at most), by F1 of its errors and those of
the cause, and by how many of its first ten errors have the cause. `named`: whether the words of that item have a trait
that names the cause. `ami`: adjusted mutual information of items and causes over the errors that have one. Controls:
errors shuffled, labels permuted, an untrained net, nothing planted.

The networks behind causes_planted.csv but those of `rare`, `combination` and further_scenarios.py were trained on
another machine (torch 2.11). Without --cache they are trained here, some half a minute each; they will not be the
same to the last bit.
"""

import argparse
import csv
import multiprocessing
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from further_scenarios import ASIDE_LATER, SETTLED_LATER
from images import TEST, drawn, noted, signs
from methods import SHOWN, Examined, Item, all_methods, causes, examined
from planted import Planted, PlantedNet, trained
from scenarios import ASIDE, SCENARIOS
from sklearn.metrics import adjusted_mutual_info_score

import weakspot.causes.slice_parts as parts
from weakspot.data.image_measures import MEASURES, image_measures
from weakspot.slices import SliceData, Trait, first_half, ranked_slices

COLUMNS = ("seed", "scenario", "method", "cause", "f1", "precision10", "nameable", "named", "ami", "shown")
PLANTED: Mapping[str, Callable[[int], Planted]] = {**SCENARIOS, **SETTLED_LATER, **ASIDE, **ASIDE_LATER}
SETTLED = (*SCENARIOS, *SETTLED_LATER)
CONTROLLED = "ranked causes"
CONTROLS = ("conditions", "patch")
REPEATS = 10


def scored(one: Examined, items: Sequence[Item], **known: Any) -> Iterator[dict[str, Any]]:
    """A row per planted cause."""
    planted = {cause: set(np.flatnonzero(having & one.wrong).tolist()) for cause, having in one.planted.causes.items()}
    for cause, own in planted.items():
        f1s = [2 * len(own & set(item.errors)) / max(len(own) + len(item.errors), 1) for item in items]
        place = int(np.argmax(f1s)) if f1s else -1
        first, words = (items[place].errors[:SHOWN], items[place].words) if f1s else ([], [])
        naming = one.planted.naming[cause]
        yield {
            **known,
            "cause": cause,
            "f1": round(f1s[place], 4) if f1s else 0.0,
            "precision10": round(float(np.mean([name in own for name in first])), 4) if len(first) else 0.0,
            "nameable": bool(naming),
            "named": any(trait in word for trait in naming for word in words),
            "ami": round(_agreement(list(planted.values()), items), 4) if len(planted) > 1 else "",
            "shown": len(items),
        }


def _agreement(planted: Sequence[set[int]], items: Sequence[Item]) -> float:
    """Over errors with one of several causes: the first cause and the first item of each; −1 where no item holds it."""
    errors = sorted(set().union(*planted))
    groups = [set(item.errors) for item in items]
    true, shown = (
        [next((number for number, group in enumerate(kind) if error in group), -1) for error in errors]
        for kind in (planted, groups)
    )
    return float(adjusted_mutual_info_score(true, shown))


def of_scenario(job: tuple[int, str], cache: Path | None, methods: Sequence[str]) -> list[dict[str, Any]]:
    """The methods, and the controls of the ranked causes, of one net."""
    torch.set_num_threads(1)
    parts.SHOWN = SHOWN
    seed, scenario = job
    planted = PLANTED[scenario](seed)
    net = trained(planted, seed, None if cache is None else cache / f"{scenario}-{seed}.pt")
    one = examined(planted, net)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for method, items in all_methods(one, Path(folder), seed).items():
            if not methods or method in methods:
                rows += scored(one, items(), seed=seed, scenario=scenario, method=method)
    if scenario in CONTROLS and (not methods or CONTROLLED in methods):
        rows += controls(one, seed)
    print(seed, scenario, f"{one.wrong.sum()} errors of {len(one.ids)}", flush=True)
    return rows


def controls(one: Examined, seed: int) -> Iterator[dict[str, Any]]:
    """How many causes are shown where there is none."""
    rng = np.random.default_rng(1000 + seed)
    torch.manual_seed(seed)
    untrained = examined(one.planted, PlantedNet(one.planted.classes).eval())
    counts = {
        "permuted labels": len(causes(one.with_labels(rng.permutation(one.labels)))),
        "untrained net": len(causes(untrained)),
    }
    traits = _traits(one)
    for repeat in range(REPEATS):
        halves, flags = first_half(one.ids, seed=repeat), rng.permutation(one.wrong)
        data = SliceData(flags, halves, one.labels.astype(np.int64), views=one.views)
        counts[f"shuffled errors {repeat}"] = sum(each.confirmed for each in ranked_slices(traits, data))
    for control, count in counts.items():
        yield {"seed": seed, "scenario": "control", "method": "ranked causes", "cause": control, "shown": count}


def _traits(one: Examined) -> list[Trait]:
    """Metadata, measures and classes."""
    traits = []
    for name, values in one.planted.metadata.items():
        column = np.asarray(values)
        traits.append(Trait(name, column if column.dtype.kind == "f" else column.astype(str)))
    for name, tensor in image_measures(one.planted.test[0]).items():
        known = MEASURES[name]
        traits.append(Trait(name, tensor.numpy(), "image", known.period, known.low, known.high))
    classes = Trait("true class", one.labels.astype(str), "class")
    return [*traits, classes, Trait("predicted class", one.predicted.astype(str), "prediction")]


def unplanted(seed: int, cache: Path | None) -> list[dict[str, Any]]:
    """What is shown of a net and signs that nothing was planted in: its natural errors may have causes, too."""
    _, test, rng = drawn(signs(), seed)
    planted = replace(SCENARIOS["conditions"](seed), test=test, metadata=noted(rng, TEST), causes={}, naming={})
    net = trained(planted, seed, None if cache is None else cache / f"conditions-{seed}.pt")
    count = len(causes(examined(planted, net)))
    return [
        {"seed": seed, "scenario": "control", "method": "ranked causes", "cause": "nothing planted", "shown": count}
    ]


def means(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the means by scenario and method, of both groups of seeds."""
    for group, seeds in (("settled", (0, 1, 2)), ("judged", (3, 4, 5))):
        own = [row for row in rows if int(row["seed"]) in seeds]
        for method in dict.fromkeys(row["method"] for row in own):
            chosen = [row for row in own if row["method"] == method and row["scenario"] in SETTLED]
            if chosen:
                print(f"{group:8} {method:50} {summed(chosen)}")
                for scenario in dict.fromkeys(row["scenario"] for row in own if row["scenario"] in PLANTED):
                    some = [row for row in own if row["method"] == method and row["scenario"] == scenario]
                    print(f"{group:8}   {scenario:48} {summed(some)}")
        kinds: dict[str, list[int]] = {}
        for row in own:
            if row["scenario"] == "control":
                kinds.setdefault(row["cause"].rstrip(" 0123456789"), []).append(int(row["shown"]))
        for kind, counts in kinds.items():
            print(f"{group:8} control: {kind:41} {np.mean(counts):.2f} shown on average of {len(counts)}")


def summed(rows: Sequence[Mapping[str, Any]]) -> str:
    """The means of some rows: over the causes of a scenario first, then over scenarios."""
    scenarios = dict.fromkeys(row["scenario"] for row in rows)
    told = []
    for key in ("f1", "precision10", "ami", "shown"):
        known = [[float(row[key]) for row in rows if row["scenario"] == name and row[key] != ""] for name in scenarios]
        of_each = [np.mean(values) for values in known if values]
        told += [f"{key} {np.mean(of_each):.2f}"] if of_each else []
    nameable = [str(row["named"]) == "True" for row in rows if str(row["nameable"]) == "True"]
    return "  ".join([*told, f"named {np.mean(nameable):.2f}" if nameable else ""])


def kept(file: Path, jobs: Sequence[tuple[int, str]], methods: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of the file but those that are to be made again."""
    again, seeds = {(str(seed), scenario) for seed, scenario in jobs}, {str(seed) for seed, _ in jobs}
    with file.open() as opened:
        rows = list(csv.DictReader(opened))

    def made_again(row: Mapping[str, str]) -> bool:
        if row["scenario"] == "control":
            return CONTROLLED in methods and row["seed"] in seeds and (row["seed"], CONTROLS[0]) in again
        return (row["seed"], row["scenario"]) in again and row["method"] in methods

    return [row for row in rows if not made_again(row)]


def write(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    """All rows so far, as CSV."""
    with file.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, nargs="+", default=range(6))
    options.add_argument("--scenarios", nargs="+", default=list(PLANTED))
    options.add_argument("--cache", type=Path)
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--out", type=Path, default=Path(__file__).with_name("causes_planted.csv"))
    options.add_argument("--methods", nargs="+", default=[], help="these alone; other rows of the file are kept")
    given = options.parse_args()
    jobs = [(seed, name) for seed in given.seeds for name in given.scenarios if name in SETTLED or seed > 2]
    rows = kept(given.out, jobs, given.methods) if given.methods else []
    with multiprocessing.get_context("fork").Pool(given.workers) as pool:
        for more in pool.imap(partial(of_scenario, cache=given.cache, methods=given.methods), jobs):
            rows += more
            write(rows, given.out)
        controlled = not given.methods or CONTROLLED in given.methods
        natural = [seed for seed, name in jobs if name == CONTROLS[0] and controlled]
        for more in pool.imap(partial(unplanted, cache=given.cache), natural):
            rows += more
    write(rows, given.out)
    means(rows)


if __name__ == "__main__":
    main()
