"""Guards of the nine shared nets: who tells wrong from correct predictions, and are the promises kept?

    python benchmarks/peers/guard.py [--data DATA] [--cache FOLDER] [--nets ResN-svhn …] [--repeats 20]

Half of the test images, drawn anew in every repeat, calibrate a guard, the other half judges it. guard.csv holds, by
net and quantity, the mean over the repeats. "auroc …" are of predictions that are wrong: confidence alone
("max_softmax"), the new scores, the guard that weighs them all, and "black_box", the diversity of the classes stored
for 15 neighbours.
"recall", "false_alarms", "risk" and "coverage …" are what comes out on the judging half, beside what was promised;
"kept" is the share of the repeats in which a promised risk was kept. "not fine …" is the share of inputs of another
kind that the guard flags or calls unfamiliar where 5 % false alarms are allowed.

The inputs of the guard and the strength of its regression were settled with these nets in sight. The detectors of weak
inputs (white box, queries, together) are measured for wrong predictions by guard_detectors.py.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import SHARED, machine, write_rows
from net_outputs import every, parser, pixels, strange_inputs, tensor

from weakspot.robustness import OperatingPoint, simpson_diversity
from weakspot.robustness.guard_fitting import FREE, PENALTY, GuardInputs, GuardSettings, fit_guard, scored
from weakspot.robustness.guard_runtime import GuardModule, input_statistics, prediction_sets
from weakspot.statistics import auroc

MISS, UNFAMILIAR = 0.1, 0.01
POINTS = {"recall": 0.8, "risk": 0.02, "false_alarms": 0.05}
_AT_ONCE = 500


def statistics(images: np.ndarray) -> np.ndarray:
    parts = [images[start : start + _AT_ONCE] for start in range(0, len(images), _AT_ONCE)]
    return torch.cat([input_statistics(tensor(part).double()) for part in parts]).numpy()


def settings(aim: str, value: float, shape: tuple[int, ...], seed: int) -> GuardSettings:
    layer = {"name": "classifier", "side": "input", "channel_dim": 1}
    point = OperatingPoint(aim, value)  # type: ignore[arg-type]
    return GuardSettings(point, MISS, "lac", UNFAMILIAR, 10, False, shape, layer, seed=seed)


def judged(guard: GuardModule, inputs: GuardInputs, targets: np.ndarray) -> Iterator[tuple[str, float]]:
    """Scores and prediction sets on the judging half."""
    scores = scored(guard, inputs)
    logits = inputs.outputs[inputs.order]
    wrong = logits.argmax(1) != targets
    yield from ((f"auroc {name}", auroc(score, wrong)) for name, score in scores.items())
    seen = guard.get_buffer("calibration_unusual").numpy()
    familiarity = (1 + (seen >= scores["unusual"][:, None]).sum(1)) / (len(seen) + 1)
    yield "unfamiliar", (familiarity <= UNFAMILIAR).mean()
    probabilities = torch.from_numpy(logits).double().softmax(1)
    for kind, quantile in guard.about["set_quantiles"].items():
        sets = prediction_sets(probabilities, kind, quantile, PENALTY, FREE).numpy()
        held = sets[np.arange(len(targets)), targets]
        yield f"coverage {kind}", held.mean()
        yield f"worst class coverage {kind}", min(held[targets == own].mean() for own in np.unique(targets))
        yield f"set size {kind}", sets.sum(1).mean()


def at_point(guard: GuardModule, inputs: GuardInputs, targets: np.ndarray, aim: str) -> Iterator[tuple[str, float]]:
    """What comes of an operating point on the judging half."""
    score, wrong = scored(guard, inputs)["guard"], inputs.outputs[inputs.order].argmax(1) != targets
    flagged = score >= guard.about["flag_threshold"]
    yield f"recall at {aim}", flagged[wrong].mean()
    yield f"false_alarms at {aim}", flagged[~wrong].mean()
    accepted = ~flagged
    yield f"accepted at {aim}", accepted.mean()
    yield f"risk at {aim}", wrong[accepted].mean() if accepted.any() else 0.0
    if aim == "risk":
        yield "kept risk", float(not accepted.any() or wrong[accepted].mean() <= POINTS["risk"])


def strange(
    guard: GuardModule, kept: dict[str, np.ndarray], inputs: dict[str, torch.Tensor]
) -> Iterator[tuple[str, float]]:
    for name, images in inputs.items():
        outputs, features = (torch.from_numpy(kept[f"{name}_{what}"]) for what in ("logits", "features"))
        answer = guard(images, outputs, features)
        yield f"not fine {name}", float((answer.verdict > 0).double().mean())
        yield f"confidence {name}", float(outputs.softmax(1).amax(1).mean())


def measured(net: str, kept: dict[str, np.ndarray], options: Any) -> dict[str, list[float]]:
    data = net.split("-")[1]
    images, labels = pixels(data, options.data)
    described, shape = statistics(images), tuple(tensor(images[:1]).shape[1:])
    ids = np.array([f"{number:05d}" for number in range(len(labels))])
    found: dict[str, list[float]] = {}
    with np.load(SHARED / "models" / "neighbours" / f"{net}-predicted.npz") as stored:
        diversity = simpson_diversity(stored["test"][:, :16].astype(np.int64))
    for repeat in range(options.repeats):
        halves = np.array_split(np.random.default_rng(repeat).permutation(len(labels)), 2)
        own, other = (GuardInputs(ids[h], kept["test_logits"], described, kept["test_features"], h) for h in halves)
        told: list[tuple[str, float]] = []
        for aim, value in POINTS.items():
            guard = fit_guard(own, labels[halves[0]], settings(aim, value, shape, repeat)).guard
            told += at_point(guard, other, labels[halves[1]], aim)
        wrong = kept["test_logits"][halves[1]].argmax(1) != labels[halves[1]]
        told += [*judged(guard, other, labels[halves[1]]), ("auroc black_box", auroc(-diversity[halves[1]], wrong))]
        if not repeat:
            told += strange(guard, kept, strange_inputs(data, options.data))
        for name, value in told:
            found.setdefault(name, []).append(float(value))
    return found


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--repeats", type=int, default=20)
    arguments.add_argument("--results", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = arguments.parse_args()
    rows = []
    for net, kept in every(options):
        for quantity, values in measured(net, kept, options).items():
            spread = np.std(values, ddof=1) if len(values) > 1 else 0.0
            told = {"mean": round(float(np.mean(values)), 4), "deviation": round(float(spread), 4)}
            counted = {"repeats": len(values), "machine": machine("cpu")}
            rows.append({"net": net, "quantity": quantity, **told, **counted})
        print(net, {row["quantity"]: row["mean"] for row in rows if row["net"] == net}, file=sys.stderr, flush=True)
    write_rows(options.results, rows)


if __name__ == "__main__":
    main()
