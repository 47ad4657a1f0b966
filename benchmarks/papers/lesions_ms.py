"""Multiple sclerosis (Lambert et al. 2022): implants into real brains, one brain held out at a time.

    python benchmarks/papers/lesions_ms.py [--keep FOLDER] [--minutes 60]     all of it, on a GPU
    python benchmarks/papers/lesions_ms.py train|sample|fit|evaluate          one stage, from what the folder holds

`prepare` fills the brains, `train` trains the nine networks in turns until the minutes are over, `sample` looks at each
case 20 times, `fit` trains the lesion models and scores the test lesions, `evaluate` writes lesions_ms*.csv beside this
script. Each stage resumes where it was interrupted. The questions stand in docs/papers-lesions-protocol.md.
"""

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain, count, pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from lesions_ms_protocol import MODEL_SEEDS, SAMPLES, Fold, all_nets, folds
from lesions_ms_volumes import MsVolumes, Prepared, make_cases, prepare
from lesions_tables import device_named, fit_and_score, load_scores, rounded, write_studies
from lesions_unet import UNet3d, UNetRecipe, train_unet
from measuring import machine, write

from weakspot import ExecutionOptions, Finding, Subject, examine
from weakspot.lesions.analysis import scored_fold
from weakspot.lesions.lesion_set import LesionSet
from weakspot.lesions.methods import PAPER_METHODS as METHODS
from weakspot.lesions.metrics_evaluation import accuracy_confidence
from weakspot.lesions.probes import Lesions

WIDTHS = (16, 32, 64)
RECIPE = UNetRecipe(learning_rate=1e-3, patch=(32, 96, 96))
KINDS = ("unseen", "seen")
"""Lesion models: of lesions in brains that their network has not seen, and of lesions in those it has."""
HERE = Path(__file__).parent


class HalfUNet(UNet3d):
    """Computes in bfloat16 on a GPU; the weights stay as they are."""

    def forward(self, inputs):
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=inputs.is_cuda):
            return super().forward(inputs).float()


def new_net(kind: type[UNet3d], seed: int) -> UNet3d:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind(1, widths=WIDTHS).to(memory_format=torch.channels_last_3d)


def net_name(fold: Fold, brains: tuple[str, ...]) -> str:
    return f"fold{fold.number}-" + "-".join(brains)


def train(options: argparse.Namespace) -> None:
    """All networks in turns of a few epochs, until the time is over; then each has the same number of epochs."""
    until = time.monotonic() + 60 * options.minutes
    tasks = list(all_nets())[: options.nets]
    cases = list(dict.fromkeys(case for fold, net in tasks for case in fold.training(net)))
    made = dict(zip(cases, make_cases(options.keep / "brains.npz", cases, options.processes), strict=True))
    print(f"{len(cases)} training cases made, {(until - time.monotonic()) / 60:.1f} minutes left", flush=True)
    sources = {}
    for fold, net in tasks:
        own = fold.training(net)
        sources[net_name(fold, net)] = MsVolumes(own, [made[case] for case in own], options.device)
    done = min(kept_epochs(options, name) for name in sources)
    for epochs in count(done + options.turn, options.turn):
        begun = time.monotonic()
        for name, source in sources.items():
            if kept_epochs(options, name) < epochs:  # more where a turn was interrupted
                dice = train_one(options, name, source, epochs)
        took = time.monotonic() - begun
        print(f"{epochs} epochs each, {took:.1f} s for the last turn, Dice {dice:.3f}", flush=True)
        if time.monotonic() + 1.1 * took > until:
            return


def net_folder(options: argparse.Namespace, name: str) -> Path:
    return options.keep / f"nets-{options.seed}" / name


def kept_epochs(options: argparse.Namespace, name: str) -> int:
    """How many epochs a network has behind it."""
    kept = list(net_folder(options, name).glob("*/course.json"))
    return int(json.loads(kept[0].read_text())["epochs"]) if kept else 0


def train_one(options: argparse.Namespace, name: str, source: MsVolumes, epochs: int) -> float:
    """Train a network until it has so many epochs; Dice of one of its training cases, to see that it gets somewhere."""
    recipe, start = replace(RECIPE, epochs=epochs, seed=options.seed), new_net(HalfUNet, options.seed)
    net = train_unet(start, source, recipe=recipe, checkpoints=net_folder(options, name), device=options.device)
    batch = source.read(np.array([0]))
    with torch.no_grad():
        found, truth = net(batch.inputs).argmax(1) == 1, batch.targets == 1
    return float(2 * (found & truth).sum() / (found.sum() + truth.sum()))


def trained(options: argparse.Namespace, fold: Fold, brains: tuple[str, ...]) -> tuple[UNet3d, int]:
    """A network and how many epochs it was trained."""
    from safetensors.torch import load_file

    (folder,) = net_folder(options, net_name(fold, brains)).iterdir()
    net = new_net(UNet3d, options.seed)
    net.load_state_dict(load_file(folder / "weights.safetensors"))
    return net.eval(), kept_epochs(options, net_name(fold, brains))


def parts_of(fold: Fold) -> list[tuple[str, tuple[str, ...], list]]:
    """What is sampled: its name, the network's brains, and the cases."""
    single = [(f"validation-{net[0]}", net, fold.validation(net)) for net in fold.nets[:2]]
    both = {"seen": fold.seen_validation(), "test": fold.test(), "real": fold.real(), "empty": fold.empty()}
    return single + [(name, fold.seen, cases) for name, cases in both.items()]


def findings_of(options: argparse.Namespace, fold: Fold, part: str) -> Path:
    return options.keep / f"lesions-{options.seed}" / f"fold{fold.number}-{part}"


def sample(options: argparse.Namespace) -> None:
    (options.keep / "machine.json").write_text(json.dumps({"machine": machine(options.device)}))
    for fold in chosen_folds(options):
        for part, brains, cases in parts_of(fold):
            kept = findings_of(options, fold, part)
            if kept.exists():
                continue
            begun = time.monotonic()
            net, epochs = trained(options, fold, brains)
            source = MsVolumes(
                cases[: options.cases],
                make_cases(options.keep / "brains.npz", cases[: options.cases], options.processes),
            )
            subject = Subject(
                net, task="segmentation", classes=("background", "lesion"), scores="logits", device=options.device
            )
            probe = Lesions(looks=options.looks, threshold=options.threshold, small_cover=False)
            (finding,) = examine(subject, source, [probe], execution=ExecutionOptions(batch_size=1, workers=0))
            replace(finding, provenance={**finding.provenance, "epochs": epochs}).save(kept)
            row = sampled_row(finding, fold, part, epochs, options.seed)
            if part == "empty":
                row["at_former_lesions"] = meeting(finding, Prepared(options.keep / "brains.npz").mask(fold.held_out))
            with (options.keep / f"sampled-{options.seed}.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row, f"{time.monotonic() - begun:.0f} s", flush=True)


def chosen_folds(options: argparse.Namespace) -> list[Fold]:
    return [fold for fold in folds() if options.fold in (None, fold.number)]


def sampled_row(finding: Finding, fold: Fold, part: str, epochs: int, seed: int) -> dict:
    """What a part of a fold came to."""
    names = ("cases", "lesions", "true_positives", "false_positives", "missed_lesions", "dice")
    own = {"net_seed": seed, "fold": fold.number, "part": part, "epochs": epochs, "at_former_lesions": ""}
    return own | {name: finding.summary[name].value for name in names}


def meeting(finding: Finding, mask: np.ndarray) -> int:
    """How many of the lesions found have a voxel in a mask."""
    lesions = LesionSet.of(finding)
    inside = mask[tuple(lesions.nodes.places.T)] & (lesions.features[:, 1] > 0)
    return int(sum(inside[a:b].any() for a, b in pairwise(lesions.nodes.starts.tolist())))


def learnt_from(options: argparse.Namespace, fold: Fold, kind: str) -> LesionSet:
    names = [f"validation-{net[0]}" for net in fold.nets[:2]] if kind == "unseen" else ["seen"]
    return LesionSet.joined([LesionSet.of(Finding.load(findings_of(options, fold, name))) for name in names])


def fit_one(options: argparse.Namespace, task: tuple[Fold, str, int]) -> str:
    """One lesion model, and what it says of the test cases and of the real patient."""
    fold, kind, seed = task
    torch.set_num_threads(1)
    scores = options.keep / f"scores-{options.seed}"
    wanted = {p: scores / f"{kind}-fold{fold.number}-{p}-{seed}" for p in ("test", "real")}
    if all(path.exists() for path in wanted.values()):
        return f"{kind} fold {fold.number} seed {seed}: there already"
    begun = time.monotonic()
    cut = {part: Finding.load(findings_of(options, fold, part)) for part in wanted}
    learnt = learnt_from(options, fold, kind)
    scored = fit_and_score(learnt, cut, seed=seed, epochs=options.epochs, extra=kind == KINDS[0])
    for part, finding in scored.items():
        if not wanted[part].exists():
            finding.save(wanted[part])
    return f"{kind} fold {fold.number} seed {seed}: {time.monotonic() - begun:.0f} s"


def fit(options: argparse.Namespace) -> None:
    tasks = [(fold, kind, seed) for kind in KINDS for seed in MODEL_SEEDS for fold in chosen_folds(options)]
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:  # a fork would lose CUDA
        for told in pool.map(partial(fit_one, options), tasks):
            print(told, flush=True)


def evaluate(options: argparse.Namespace) -> None:
    """Tables 1 and 2, Figure 2, the differences, and the real patients; of every seed that there is."""
    studies, real, named = [], [], device_named(options.keep)
    for scores in sorted(options.keep.glob("scores-*")):
        known = {"machine": named, "net_seed": int(scores.name.removeprefix("scores-"))}
        for kind in KINDS:
            scored = load_scores(scores, kind + "-fold{fold}-test-{seed}", MODEL_SEEDS, len(folds()))
            studies += [({**known, "learnt_from": f"{kind} brains"}, scored)] if scored else []
        patients = load_scores(scores, "unseen-fold{fold}-real-{seed}", MODEL_SEEDS, len(folds()))
        rows = [patient_row([seed[fold.number] for seed in patients], fold) for fold in folds()]
        real += [{**known, **rounded(row)} for row in rows]
    write_studies(HERE / "lesions_ms", studies)
    write(HERE / "lesions_ms_real.csv", real)
    lines = [file.read_text().splitlines() for file in sorted(options.keep.glob("sampled-*.jsonl"))]
    write(HERE / "lesions_ms_sampled.csv", [{"machine": named, **rounded(json.loads(x))} for x in chain(*lines)])


def patient_row(scored: list[Finding], fold: Fold) -> dict:
    """A real patient: counts, and the area of every method, graph networks as the mean over the seeds."""
    own = [scored_fold(finding, None) for finding in scored]
    told, wrong = scored[0].summary, own[0].false_positive
    row = {"patient": fold.held_out, "dice": told["dice"].value}
    row |= {name: int(told[name].value) for name in ("true_positives", "false_positives", "missed_lesions")}
    for method in METHODS:
        both = 0 < wrong.sum() < len(wrong)
        areas = [accuracy_confidence(one.uncertainty[method], wrong).area for one in own] if both else [np.nan]
        row[method] = float(np.mean(areas))
    return row


def everything(options: argparse.Namespace) -> None:
    if options.device == "cpu":
        print("lesions_ms: nine networks are trained, which needs a GPU; skipped")
        return
    prepare_brains(options)
    if not (options.keep / f"lesions-{options.seed}").exists():  # else the networks are done
        train(options)
    for stage in (sample, fit, evaluate):
        stage(options)


def prepare_brains(options: argparse.Namespace) -> None:
    options.keep.mkdir(parents=True, exist_ok=True)
    if not (options.keep / "brains.npz").exists():
        prepare(options.keep / "brains.npz")


STAGES = {
    "all": everything,
    "prepare": prepare_brains,
    "train": train,
    "sample": sample,
    "fit": fit,
    "evaluate": evaluate,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=tuple(STAGES), default="all")
    parser.add_argument("--keep", type=Path, default=Path("lesions_ms"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--minutes", type=float, default=60, help="of the training of the networks")
    parser.add_argument("--turn", type=int, default=5, help="epochs of each network in a turn")
    parser.add_argument("--seed", type=int, default=0, help="of the networks")
    parser.add_argument("--fold", type=int, choices=(0, 1, 2), help="sample and fit this one alone")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--looks", type=int, default=SAMPLES)
    parser.add_argument("--threshold", type=float, default=0.5)
    parser.add_argument("--epochs", type=int, default=60, help="of the graph networks")
    parser.add_argument("--nets", type=int, default=9, help="for a trial: how many networks")
    parser.add_argument("--cases", type=int, default=100, help="for a trial: how many cases of each part")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True  # volumes and patches have one size each
    STAGES[options.what](options)


if __name__ == "__main__":
    main()
