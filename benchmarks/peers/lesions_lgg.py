"""The lesion room on real glioma volumes and four trained U-Nets: do fresh samples agree, and which lesions are real?

    python benchmarks/peers/lesions_lgg.py maps [--patients 10]      fresh Monte-Carlo dropout beside the stored maps
    python benchmarks/peers/lesions_lgg.py study [--samples 20] [--keep FOLDER]
    python benchmarks/peers/lesions_lgg.py sample --fold 0 --part test --keep FOLDER     one piece of the study

Bar of `maps`: at most 0.005 between the mean maps of 20 fresh passes and the stored ones, on average over the voxels.
`study`: each fold's net samples its validation and test patients. Validation lesions of all folds are pooled to train
the lesion model of a fold, without the patients that test it, so that no patient is on both sides. Lesions of TCGA-LGG
are few and mostly single (Buda et al. 2019): intervals are wide.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from measuring import SHARED, architectures, machine, write

from weakspot import Execution, Finding, Subject, examine
from weakspot.core.digest import digest
from weakspot.core.observation import Batch
from weakspot.lesions.comparison import evaluation_finding
from weakspot.lesions.lesion_set import LesionSet
from weakspot.lesions.measures import RunningSamples
from weakspot.lesions.model import fit_lesion_model
from weakspot.lesions.probes import Lesions
from weakspot.lesions.telling import scores_finding
from weakspot.looks import McDropout

LGG = SHARED / "data" / "lgg"


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


def subject(fold: int) -> Subject:
    models = architectures()
    net = models.load_half_precision(
        models.McDropoutUNet(), str(SHARED / "models" / f"McDropoutUNet-lgg_fold{fold}.safetensors")
    )
    return Subject(net, task="segmentation", classes=("background", "tumour"), scores="logits")


def maps(options: argparse.Namespace) -> None:
    folds, apart = json.loads((LGG / "folds.json").read_text()), []
    for fold in range(4):
        tested, look = subject(fold), McDropout(options.seed)
        stored = np.load(LGG / f"McDropoutUNet-lgg_fold{fold}-probabilities.npz")
        chosen = sorted(folds[fold]["test"])[: -(-options.patients // 4)]
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
    write(Path(__file__).with_name("lesions_lgg_maps.csv"), [{**row, "largest": round(max(apart), 5), "bar": 0.005}])


def sampled(fold: int, patients, part: str, options: argparse.Namespace) -> Finding:
    """The lesions of some patients, from the folder of an earlier call where there is one."""
    kept = options.keep / f"{part}-{fold}-{options.samples}"
    if not kept.exists():
        probe = Lesions(samples=options.samples, seed=options.seed)
        finding = examine(subject(fold), LggVolumes(patients), [probe], execution=Execution(batch_size=1, workers=0))[0]
        finding.save(kept)
        print(f"fold {fold} {part}: {finding.table.num_rows} lesions", flush=True)
    return Finding.load(kept)


def without(lesions: LesionSet, patients) -> LesionSet:
    """The lesions of all other patients."""
    keep = np.flatnonzero(~np.isin(lesions.case, list(patients)))
    return lesions.chosen(keep)


def study(options: argparse.Namespace) -> None:
    folds = json.loads((LGG / "folds.json").read_text())
    options.keep.mkdir(parents=True, exist_ok=True)
    validation = [LesionSet.of(sampled(f, folds[f]["validation"], "validation", options)) for f in range(4)]
    scored = []
    for fold in range(4):
        test = sampled(fold, folds[fold]["test"], "test", options)
        learnt = LesionSet.joined([without(own, folds[fold]["test"]) for own in validation])
        model, _ = fit_lesion_model(learnt, learnt.case)
        wrong = int(learnt.false_positive.sum())
        print(f"fold {fold}: learns from {len(learnt) - wrong} true and {wrong} false positives", flush=True)
        scored.append(scores_finding(test, model))
    told = evaluation_finding(scored)
    print({name: str(estimate) for name, estimate in told.summary.items()})
    rows = [{"machine": machine("cpu"), "samples": options.samples, **row} for row in told.table.to_pylist()]
    rounded = [{key: round(v, 4) if isinstance(v, float) else v for key, v in row.items()} for row in rows]
    write(Path(__file__).with_name("lesions_lgg.csv"), rounded)


def sample(options: argparse.Namespace) -> None:
    """One part of one fold alone, so that the study can be done in pieces."""
    folds = json.loads((LGG / "folds.json").read_text())
    options.keep.mkdir(parents=True, exist_ok=True)
    sampled(options.fold, folds[options.fold][options.part], options.part, options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=("maps", "sample", "study"), default="maps")
    parser.add_argument("--patients", type=int, default=10)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fold", type=int, default=0)
    parser.add_argument("--part", choices=("validation", "test"), default="test")
    parser.add_argument("--keep", type=Path, default=Path("lesions_lgg"))
    options = parser.parse_args()
    {"maps": maps, "sample": sample, "study": study}[options.what](options)


if __name__ == "__main__":
    main()
