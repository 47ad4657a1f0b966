"""Glioma (TCGA-LGG, 110 patients, Buda et al. 2019) and four trained U-Nets: which lesions are real, and do maps agree?

    python benchmarks/papers/lesions_lgg.py [--keep FOLDER]        all stages of the study, on a GPU
    python benchmarks/papers/lesions_lgg.py sample|fit|evaluate    one stage, from what the folder holds
    python benchmarks/papers/lesions_lgg.py stored                 Table 1 alone, from stored means of 20 passes
    python benchmarks/papers/lesions_lgg.py maps [--patients 10]   fresh Monte-Carlo dropout beside the stored maps

Each fold's network samples its validation and test patients. Validation lesions of all folds are pooled to train the
lesion models of a fold, without the patients that test it, so that no patient is on both sides. Beside them stand
models of the own fold's validation lesions alone: few, but sampled by no network that was trained on a test patient.
Lesions of TCGA-LGG are few and mostly single, so intervals are wide. Writes lesions_lgg*.csv beside this script. Bar of
`maps`: at most 0.005 between the mean maps of 20 fresh passes and the stored ones, on average over the voxels.
"""

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from lesions_tables import device_named, fit_and_score, load_scores, write_studies
from measuring import SHARED, architectures, machine, write

from weakspot import ExecutionOptions, Finding, Subject, examine
from weakspot.core.digest import digest
from weakspot.core.observation import Batch
from weakspot.lesions.cases import dice
from weakspot.lesions.lesion_set import LesionSet
from weakspot.lesions.metrics import RunningSamples
from weakspot.lesions.metrics_components import adjusted_iou, lesion_components, true_positives
from weakspot.lesions.probes import Lesions
from weakspot.looks import McDropout

LGG = SHARED / "data" / "lgg"
FOLDS = 4
MODEL_SEEDS = (0, 1, 2, 3, 4)
SCORES = {"all folds": "fold{fold}-test-{seed}", "own fold": "own-fold{fold}-test-{seed}"}
"""Whose validation lesions a model learns from, and where what it says is kept."""
HERE = Path(__file__).parent


class LggVolumes:
    """FLAIR volumes of some patients, z-scored over the head, with their tumour masks."""

    def __init__(self, patients):
        self.ids = tuple(sorted(patients))
        self._stored = np.load(LGG / "volumes.npz")

    def read(self, positions):
        ids = tuple(self.ids[place] for place in positions)
        (case,) = ids  # volumes differ in size, so batches hold one
        flair = self._stored[f"flair/{case}"].astype(np.float32)
        head = flair[flair > 0.15 * np.percentile(flair, 99)]
        mask = self._stored[f"mask/{case}"] > 0
        inputs = torch.from_numpy((flair - head.mean()) / head.std())[None, None]
        return Batch(ids, np.asarray(positions), inputs, torch.from_numpy(mask.astype(np.int64))[None])

    def fingerprint(self):
        return digest(["lgg", self.ids])


def subject(fold: int, device: str) -> Subject:
    models = architectures()
    net = models.load_half_precision(
        models.McDropoutUNet(), str(SHARED / "models" / f"McDropoutUNet-lgg_fold{fold}.safetensors")
    )
    return Subject(net, task="segmentation", classes=("background", "tumour"), scores="logits", device=device)


def patients_in(fold: int, part: str) -> list[str]:
    return json.loads((LGG / "folds.json").read_text())[fold][part]


def maps(options: argparse.Namespace) -> None:
    apart = []
    for fold in range(FOLDS):
        tested, look = subject(fold, "cpu"), McDropout()
        stored = np.load(LGG / f"McDropoutUNet-lgg_fold{fold}-probabilities.npz")
        chosen = sorted(patients_in(fold, "test"))[: -(-options.patients // FOLDS)]
        source = LggVolumes(chosen[: max(0, options.patients - len(apart))])
        for place, case in enumerate(source.ids):
            running, batch = RunningSamples((1,)), source.read(np.array([place]))
            with tested.borrowed() as forward, torch.no_grad():
                for number in range(1, 21):
                    running.add(look.outputs(forward, batch.inputs, batch.ids, number).softmax(1))
            expected = (stored[f"test/{case}"].astype(np.float64) + 0.5) / 256
            apart.append(float(np.abs(running.maps().lesion[0].numpy() - expected).mean()))
            print(f"fold {fold} {case}: {apart[-1]:.5f}", flush=True)
    row = {"machine": machine("cpu"), "patients": len(apart), "mean_difference": round(float(np.mean(apart)), 5)}
    write(HERE / "lesions_lgg_maps.csv", [{**row, "largest": round(max(apart), 5), "bar": 0.005}])


def stored(options: argparse.Namespace) -> None:
    """Segmentation and lesions of every fold's test patients, from the stored mean probabilities."""
    volumes, rows = np.load(LGG / "volumes.npz"), []
    for fold in range(FOLDS):
        maps_of = np.load(LGG / f"McDropoutUNet-lgg_fold{fold}-probabilities.npz")
        dices, found = [], []
        for case in patients_in(fold, "test"):
            truth = volumes[f"mask/{case}"] > 0
            labels, _ = lesion_components(maps_of[f"test/{case}"] >= 128)
            dices.append(dice(labels > 0, truth))
            found.append(true_positives(adjusted_iou(labels, lesion_components(truth, smallest=1)[0])))
        right = np.concatenate(found)
        row = {"fold": fold, "patients": len(dices), "dice": round(float(np.nanmean(dices)), 4)}
        row |= {"true_positives": int(right.sum()), "false_positives": int((~right).sum())}
        rows.append({"machine": machine("cpu"), **row})
    write(HERE / "lesions_lgg_stored.csv", rows)


def sample(options: argparse.Namespace) -> None:
    options.keep.mkdir(parents=True, exist_ok=True)
    (options.keep / "machine.json").write_text(json.dumps({"machine": machine(options.device)}))
    for fold in range(FOLDS) if options.fold is None else [options.fold]:
        for part in ("validation", "test"):
            kept = options.keep / "lesions" / f"fold{fold}-{part}"
            if kept.exists():
                continue
            source = LggVolumes(patients_in(fold, part)[: options.patients])
            probe = Lesions(looks=options.looks, small_cover=False)
            how = ExecutionOptions(batch_size=1, workers=0)
            (finding,) = examine(subject(fold, options.device), source, [probe], execution=how)
            finding.save(kept)
            print(f"fold {fold} {part}: {finding.table.num_rows} lesions", flush=True)


def learnt_from(keep: Path, fold: int, whose: str) -> LesionSet:
    """Validation lesions of all folds or of this one, without those of patients that test it."""
    folds = range(FOLDS) if whose == "all folds" else [fold]
    sets = [LesionSet.of(Finding.load(keep / "lesions" / f"fold{k}-validation")) for k in folds]
    pooled, tested = LesionSet.joined(sets), patients_in(fold, "test")
    return pooled.chosen(np.flatnonzero(~np.isin(pooled.case, tested)))


def fit_one(options: argparse.Namespace, task: tuple[str, int, int]) -> str:
    whose, seed, fold = task
    torch.set_num_threads(1)
    kept, begun = options.keep / "scores" / SCORES[whose].format(fold=fold, seed=seed), time.monotonic()
    if not kept.exists():
        cut = {"test": Finding.load(options.keep / "lesions" / f"fold{fold}-test")}
        learnt = learnt_from(options.keep, fold, whose)
        fit_and_score(learnt, cut, seed=seed, epochs=options.epochs, device=options.device)["test"].save(kept)
    return f"{whose}: fold {fold} seed {seed}: {time.monotonic() - begun:.0f} s"


def fit(options: argparse.Namespace) -> None:
    tasks = list(product(SCORES, MODEL_SEEDS, range(FOLDS)))
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:  # a fork would lose CUDA
        for told in pool.map(partial(fit_one, options), tasks):
            print(told, flush=True)


def evaluate(options: argparse.Namespace) -> None:
    studies = []
    for whose, pattern in SCORES.items():
        known = {"machine": device_named(options.keep), "learnt_from": whose}
        scored = load_scores(options.keep / "scores", pattern, MODEL_SEEDS, FOLDS)
        studies += [(known, scored)] if scored else []
    write_studies(HERE / "lesions_lgg", studies)


def everything(options: argparse.Namespace) -> None:
    if not LGG.is_dir():
        print(f"lesions_lgg: needs {LGG}, set $WEAKSPOT_SHARED; skipped")
        return
    stored(options)
    if options.device == "cpu":
        print("lesions_lgg: 3,500 passes over volumes need a GPU; skipped, `sample` does it nevertheless")
        return
    for stage in (sample, fit, evaluate):
        stage(options)


STAGES = {"all": everything, "sample": sample, "fit": fit, "evaluate": evaluate, "stored": stored, "maps": maps}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=tuple(STAGES), default="all")
    parser.add_argument("--keep", type=Path, default=Path("lesions_lgg"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--fold", type=int, choices=range(FOLDS), help="sample this one alone")
    parser.add_argument("--patients", type=int, default=110, help="at most, of each part")
    parser.add_argument("--looks", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=60, help="of the graph networks")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    STAGES[options.what](options)


if __name__ == "__main__":
    main()
