"""Why does a network fail? Eyes drawn by a simulator, so that the causes are known: python examples/causes.py"""

from collections import Counter
from dataclasses import replace

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from weakspot import Subject, examine
from weakspot.causes.errors import Errors
from weakspot.causes.probes import RootCauses
from weakspot.data.eyes import CLASSES, EyeRanges, Eyes
from weakspot.data.sources import ArraySource

KNOWN = EyeRanges(opening=(0.6, 1.0), light=(0.8, 1.1), reflection=(0.0, 0.2))
UNKNOWN = {
    "open": KNOWN,
    "closed": replace(KNOWN, closed=1.0),
    "dark": replace(KNOWN, light=(0.08, 0.2)),
    "reflection": replace(KNOWN, glasses=1.0, reflection=(0.9, 1.0)),
}


def gaze_detector() -> nn.Module:
    """Trained on open eyes in good light."""
    torch.manual_seed(0)
    net = nn.Sequential(
        *[nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 16, 3, 2, 1)],
        *[nn.ReLU(), nn.Flatten(), nn.Linear(16 * 6 * 10, 64), nn.ReLU(), nn.Linear(64, 8)],
    )
    batch = Eyes(1000, ranges=KNOWN, seed=1).read(np.arange(1000))
    optimiser = torch.optim.Adam(net.parameters(), lr=2e-3)
    for _ in range(8):
        for rows in torch.randperm(1000).split(64):
            optimiser.zero_grad()
            F.cross_entropy(net(batch.inputs[rows]), batch.known_targets[rows]).backward()
            optimiser.step()
    return net.eval()


def mixture(each: int) -> ArraySource:
    """Eyes of every kind; the name of each tells which."""
    parts = [Eyes(each, ranges=ranges, seed=2, name=kind) for kind, ranges in UNKNOWN.items()]
    batches = [part.read(np.arange(each)) for part in parts]
    images = torch.cat([batch.inputs for batch in batches])
    targets = torch.cat([batch.known_targets for batch in batches])
    return ArraySource(images.numpy(), targets.numpy(), ids=[name for part in parts for name in part.ids])


def main() -> None:
    subject, test = Subject(gaze_detector(), classes=CLASSES["gaze"], scores="logits"), mixture(60)
    errors = examine(subject, test, [Errors()])[0]
    print(f"error-inducing images: {errors.summary['errors']} of {errors.summary['inputs']}")

    causes = examine(subject, test, [RootCauses(errors=errors)])[0]
    for name in ("clusters", "stable_clusters", "alone", "layer", "images_to_inspect"):
        print(f"{name}: {causes.summary[name]} ({causes.summary[name].about})")

    ids, numbers = causes.arrays["image_id"], causes.arrays["image_cluster"]
    for row in causes.table.slice(0, 8).to_pylist():
        planted = Counter(name.partition("-")[0] for name in ids[numbers == row["cluster"]].tolist())
        print(f"cluster {row['cluster']}: {row['images']} images, stability {row['stability']:.2f}, {dict(planted)}")


if __name__ == "__main__":
    main()
