"""Why does a network fail, and what should be labelled next? Eyes of known kinds: python examples/causes.py"""

import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from weakspot import Plan, Run, Subject
from weakspot.causes import export_clusters, export_labels
from weakspot.causes.room import steps
from weakspot.data import eye_net


def kinds(ids: Iterable[str]) -> dict[str, int]:
    """How many eyes of each kind: the simulator names them after it."""
    return dict(Counter(name.partition("-")[0] for name in ids))


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="causes-"))
    subject = Subject(eye_net.model(), classes=eye_net.CLASSES, scores="logits")
    data = {"test": eye_net.test(), "pool": eye_net.pool()}
    asked = steps({"angles": ["gaze_angle", "light_angle"], "select": {"from": "pool", "budget": 100}})
    run = Run.create(folder / "run")
    errors, slices, causes, unsafe = Plan.of(asked).run(subject, data, run)

    print(f"error-inducing images: {errors.summary['errors']} of {errors.summary['inputs']}")
    for row in [] if slices.table is None else slices.table.to_pylist():
        print(f"{row['status']}: {row['summary']}")
        print(f"  its errors, against correct images of the same classes: {row['contrast']}")
    for name in ("clusters", "stable_clusters", "explained_clusters", "layer", "images_to_inspect", "share_to_inspect"):
        print(f"{name}: {causes.summary[name]} ({causes.summary[name].about})")
    ids, numbers = causes.arrays["image_id"], causes.arrays["image_cluster"]
    for row in causes.table.slice(0, 8).to_pylist():
        print(f"cluster {row['cluster']}: {row['images']} images, {kinds(ids[numbers == row['cluster']].tolist())}")
        print(f"  shared: {row['shared'] or 'nothing that the metadata tell'}")

    print(
        f"to label: {unsafe.summary['unsafe']} of {unsafe.summary['inputs']}, {kinds(unsafe.table['id'].to_pylist())}"
    )
    export_labels(unsafe, folder / "labels.csv")
    export_clusters(run, data["test"], folder / "clusters")
    print(f"wrote {folder / 'labels.csv'} and {folder / 'clusters'}")


if __name__ == "__main__":
    main()
