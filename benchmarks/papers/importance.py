"""DeepImportance's Tables 3, 4 and 5: coverage of original, noisy and attacked test sets by all criteria.

    python benchmarks/papers/importance.py [--nets LeNet-5 …] [--device cuda] [--runs FOLDER] [--seeds 0 …]

writes importance.csv beside this script: one row per network, set, seed, criterion, layers and number of neurons.
`importance_tables.py` makes the tables of docs/papers-importance.md of it. Findings are kept in FOLDER, so that an
interrupted call goes on. Data and networks as in importance_nets.py.

Sets: U_O is the whole test set ("original"). The others add as many images to it: "S" the same with Gaussian noise
(σ = 0.3) on 2 % random pixels, "DI" with the same noise on the 2 % most relevant, "noise" with that noise on all
pixels; "fgsm", "bim", "jsma" and "carlini_wagner" the same attacked. "T" adds as many training images, which the paper
does not have: more images of the same kind raise coverage, too, and that is what noise has to be compared with.

The paper does not say whether neurons are chosen, and inputs counted, over all classes or class by class: both are
given (`classes`; "apart": neurons and test inputs by true class, clusters over all training inputs, mean of the
classes). Nor does it say which layers the other criteria see: all, before their activation, and the subject layer
alone, after its activation.
"""

import csv
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
import steering_nets
from importance_nets import PUBLISHED, Case, case, performance
from measuring import machine

from weakspot import Plan, Run, Step
from weakspot.attacks import Attack, Attacked, Bim, CarliniWagner, Fgsm, GaussianNoise, Jsma, RelevantNoise, Together
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.source import Source, limited
from weakspot.coverage.importance_probes import ImportanceDrivenCoverage
from weakspot.coverage.neuron_probes import KMultisection, NeuronCoverage, TopNeurons
from weakspot.coverage.surprise_probes import DistanceSurpriseCoverage, LikelihoodSurpriseCoverage

NEURONS = (6, 8, 10, 12)
TABLE_3 = ("original", "S", "DI")
QUIET: dict[str, Any] = {"thumbnail": 0, "holes": 0}
KEY = ("network", "set", "seed", "criterion", "layers", "neurons", "classes")
HOW = ExecutionOptions(batch_size=1000, shard_size=10_000)
OF_SECTIONS = {"KMNC": "coverage", "NBC": "boundary_coverage", "SNAC": "strong_coverage"}


@dataclass(frozen=True)
class Asked:
    """A step, and which rows are read off its Finding: criterion to the entry of the summary."""

    step: Step
    about: dict[str, Any]
    entries: dict[str, str]


def attacks(one: Case) -> dict[str, Callable[[], Attack]]:
    """What is done to the test images, by the name of the set; only noise where the answer is a number."""
    noise: dict[str, Callable[[], Attack]] = {
        "S": GaussianNoise,
        "DI": RelevantNoise,
        "noise": lambda: GaussianNoise(share=1),
    }
    if one.subject.task == "regression":
        return noise
    return {
        **noise,
        "fgsm": lambda: Fgsm(epsilon=one.epsilon),
        "bim": lambda: Bim(epsilon=one.epsilon),
        "jsma": lambda: Jsma(on="probabilities"),
        "carlini_wagner": CarliniWagner,
    }


def sets(one: Case, seeds: Sequence[int]) -> Iterator[tuple[str, int, Source, Source]]:
    """Name, seed, the whole set, and what was added to the original test data; chance has several seeds."""
    test = one.data["test"]
    for seed in seeds:
        if seed == 0:
            yield "original", 0, test, test
            more = limited(one.data["train"], len(test.ids))
            yield "T", 0, Together({"original": test, "training": more}), more
        for name, attack in attacks(one).items():
            if seed == 0 or name in TABLE_3:
                changed = Attacked(test, one.subject, attack(), seed=seed, batch_size=1000, part_size=1000)
                yield name, seed, Together({"original": test, "changed": changed}), changed


def asked(one: Case, name: str, split: str, *, depth_alone: bool = False) -> Iterator[Asked]:
    """All questions to one set, or those of Table 5 alone."""
    if not depth_alone:
        yield from importance(one, name, split)
        yield from others(one, name, split)
    if name in TABLE_3:
        for (classes, options), (label, layers) in itertools.product(scopes(one).items(), one.depth.items()):
            own = {"layers": layers, "neurons": one.depth_neurons}
            step = Step.of(ImportanceDrivenCoverage, split=split, **own, **QUIET, **options)
            yield Asked(step, {**own, "layers": label, "classes": classes}, {"IDC": "coverage"})


def scopes(one: Case) -> dict[str, dict[str, Any]]:
    """Classes together, and apart where there are any."""
    apart = {"apart": {"per_class": True, "classes_by": "target"}} if one.subject.task == "classification" else {}
    return {"together": {}, **apart}


def importance(one: Case, name: str, split: str) -> Iterator[Asked]:
    for classes, options in scopes(one).items():
        for neurons in NEURONS if classes == "together" or name in TABLE_3 else NEURONS[:2]:
            own = {"layers": one.layer, "neurons": neurons}
            step = Step.of(ImportanceDrivenCoverage, split=split, **own, **QUIET, **options)
            yield Asked(step, {**own, "layers": "subject", "classes": classes}, {"IDC": "coverage"})


def others(one: Case, name: str, split: str) -> Iterator[Asked]:
    """The criteria that importance-driven coverage is compared with."""
    for scope, layers in {"all": "all", "subject": one.layer}.items():
        about, own = {"layers": scope, "neurons": "", "classes": ""}, {"layers": layers, "side": "output"}
        yield Asked(Step.of(NeuronCoverage, split=split, **own), about, {"NC": "coverage"})
        yield Asked(Step.of(KMultisection, split=split, **own), about, OF_SECTIONS)
        yield Asked(Step.of(TopNeurons, split=split, **own), about, {"TKNC": "coverage"})
    about = {"layers": "subject", "neurons": "", "classes": ""}
    surprise = {"LSC": LikelihoodSurpriseCoverage, "DSC": DistanceSurpriseCoverage}
    for criterion, probe in surprise.items():
        if one.subject.task in probe.tasks and name != "T":  # training images do not surprise
            yield Asked(Step.of(probe, split=split, layers=one.layer), about, {criterion: "coverage"})


def rows(
    one: Case, name: str, seed: int, whole: Source, run: Run, *, depth_alone: bool = False
) -> Iterator[dict[str, Any]]:
    split = name if name in ("original", "T") else f"{name}{seed}"
    questions = list(asked(one, name, split, depth_alone=depth_alone))
    plan = Plan.of([question.step for question in questions])
    findings = plan.run(one.subject, {"train": one.data["train"], split: whole}, run, execution=HOW)
    found = {step.key: finding for step, finding in zip(plan.steps, findings, strict=True)}
    for question in questions:
        finding = found[question.step.key]
        for criterion, entry in question.entries.items():
            targets = {"coverage": "targets"}.get(entry, entry.replace("coverage", "targets"))
            yield {
                "network": one.name,
                "set": name,
                "seed": seed,
                "criterion": criterion,
                **question.about,
                "coverage": round(100 * float(finding.summary[entry].value), 4),  # type: ignore[arg-type]
                "targets": finding.summary[targets].value if targets in finding.summary else "",
            }


def answered(one: Case, name: str, seed: int, added: Source) -> dict[str, Any]:
    """How the network does on what was added."""
    blank = {"layers": "", "neurons": "", "classes": ""}
    what = {"network": one.name, "set": name, "seed": seed, "criterion": "performance", **blank}
    return {**what, "coverage": round(performance(one.subject, added), 6), "targets": ""}


def kept(path: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {tuple(row[name] for name in KEY): row for row in csv.DictReader(file)}


def keep(path: Path, new: list[dict[str, Any]]) -> None:
    """The rows, in place of those of the same questions."""
    everything = {**kept(path), **{tuple(str(row[name]) for name in KEY): row for row in new}}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(new[0]))
        writer.writeheader()
        writer.writerows(everything.values())


def main() -> None:
    parser = steering_nets.argument_parser(__doc__, __file__)
    parser.add_argument("--nets", nargs="+", choices=PUBLISHED, default=list(PUBLISHED))
    parser.add_argument("--runs", type=Path, default=Path(tempfile.gettempdir()) / "weakspot-importance")
    parser.add_argument("--seeds", nargs="+", type=int, default=range(5))
    parser.add_argument("--sets", nargs="+", help="only these")
    parser.add_argument("--depth", action="store_true", help="Table 5 alone")
    parser.add_argument("--limit", type=int, help="test and training images, for a trial")
    parser.add_argument("--minutes", type=float, default=600)
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    for name in options.nets:
        one = case(name, options.device, options.weights)
        if options.limit:
            few = {split: limited(source, options.limit) for split, source in one.data.items()}
            one = Case(one.name, one.subject, few, one.layer, one.depth, one.depth_neurons, one.epsilon)
        folder = options.runs / name
        run = Run.open(folder) if folder.exists() else Run.create(folder)
        for what, seed, whole, added in sets(one, options.seeds):
            begun = time.monotonic()
            if begun > until:
                return
            known = (name, what, str(seed), "performance", "", "", "") in kept(options.results)
            if (known and not options.depth) or what not in (options.sets or (TABLE_3 if options.depth else [what])):
                continue
            told = [*rows(one, what, seed, whole, run, depth_alone=options.depth)]
            told += [] if options.depth else [answered(one, what, seed, added)]
            keep(options.results, [{**row, "machine": machine(options.device)} for row in told])
            print(f"{name} {what} {seed}: {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
