import csv

import numpy as np
import pytest
from PIL import Image
from scipy.spatial.distance import pdist

from tests.causes.conftest import CLASSES, TinyNet
from weakspot import Plan, Subject
from weakspot.causes.analysis import ErrorImages
from weakspot.causes.cluster_pictures import mean_of_maps
from weakspot.causes.distances import square
from weakspot.causes.export import export_clusters
from weakspot.causes.export_files import file_name
from weakspot.causes.room import steps, train_results
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.run import Run
from weakspot.data import eye_net
from weakspot.data.sources import ImageFolder
from weakspot.relevance import hudd, relevance


def rows_of(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_a_folder_per_cluster_with_images_and_animation(examined, splits, tmp_path):
    left_out = export_clusters(examined, splits["test"], tmp_path / "out")
    assert left_out == ["no train_results.csv: the Run has no causes.errors-train"]
    found = examined["causes.root_causes"]
    for row in found.table.to_pylist():
        folder = tmp_path / "out" / f"cluster-{row['cluster']:02d}"
        images = sorted(path.name for path in folder.glob("[0-9]*.png"))
        assert len(images) == row["images"]
        assert images[0].endswith(f"-{row['medoid']}.png")
        with Image.open(folder / "animation.gif") as animation:
            assert animation.n_frames == row["images"]
            assert animation.info["duration"] == 600
        with Image.open(folder / images[0]) as image:
            shown = np.asarray(image)[:, :, 0]
        pixels = splits["test"].read(np.array([splits["test"].ids.index(row["medoid"])])).inputs[0, 0].numpy()
        assert np.abs(shown - pixels * 255).max() <= 0.51
        assert (folder / "contact_sheet.png").exists()
        assert (folder / "heat_map.png").exists()
    assert len(rows_of(tmp_path / "out" / "images.csv")) == found.summary["errors"].value
    assert [row["shared"] for row in rows_of(tmp_path / "out" / "clusters.csv")] == found.table["shared"].to_pylist()


def test_distances_and_clusters_of_every_layer(examined, tmp_path):
    export_clusters(examined, None, tmp_path / "out")
    images = ErrorImages.of_finding(examined["causes.root_causes"])
    for number, name in enumerate(images.layers):
        folder = tmp_path / "out" / "layers" / f"{number:02d}-{name}"
        assert np.array_equal(np.load(folder / "distances.npy"), images.distances[number])
        told = [
            [float(value) for key, value in row.items() if key != "id"] for row in rows_of(folder / "distances.csv")
        ]
        assert np.allclose(told, square(images.distances[number]), rtol=1e-5)
        clusters = [int(row["cluster"]) for row in rows_of(folder / "clusters.csv")]
        assert clusters == np.load(folder / "clusters.npy").tolist()
    own, best = examined["causes.root_causes"].arrays, int(examined["causes.root_causes"].arrays["best_layer"])
    labels = own["layer_labels"][best][own["image_cluster"] > 0]
    pairs = set(zip(labels.tolist(), own["image_cluster"][own["image_cluster"] > 0].tolist(), strict=True))
    assert len(pairs) == len(set(labels.tolist()))  # the same clusters, by other numbers


def causes_of(net, splits, folder, **options):
    run = Run.create(folder / "run")
    Plan.of(steps({"replicates": 0, "clusters": 6, **options})).run(
        Subject(net, classes=CLASSES, scores="logits"), splits, run
    )
    return run


def test_heat_maps_of_every_layer_on_request(net, splits, tmp_path):
    run = causes_of(net, splits, tmp_path, keep="all", sketch=None)
    left_out = export_clusters(run, splits["test"], tmp_path / "out", heat_maps=True)
    assert left_out == ["no train_results.csv: the Run has no causes.errors-train"]
    found = run["causes.root_causes"]
    images, source = ErrorImages.of_finding(found), splits["test"]
    inputs = source.read(np.array([source.ids.index(name) for name in images.ids])).inputs
    shapes = []
    for number, name in enumerate(images.layers):
        folder = tmp_path / "out" / "layers" / f"{number:02d}-{name}"
        maps = np.load(folder / "heat_maps.npy")
        point = f"{name}:input"
        slowly = [relevance(net, one[None], method=hudd(), layers=[point]).layers[point][0].numpy() for one in inputs]
        assert maps.dtype == np.float32 and np.allclose(maps, np.stack(slowly), rtol=1e-4, atol=1e-6)
        assert np.allclose(pdist(maps.reshape(len(maps), -1)), images.distances[number], rtol=1e-4)
        shapes.append(maps.shape[1:])
        pictures = sorted(path.name for path in folder.glob("*.png"))
        clusters = [f"heat_map-{row['cluster']:02d}.png" for row in found.table.to_pylist()]
        assert pictures == (clusters if maps.ndim == 4 else [])
    assert shapes == [(1, 8, 8), (64,), (8,)]
    members = np.flatnonzero(found.arrays["image_cluster"] == 1)
    first = np.load(tmp_path / "out" / "layers" / f"00-{images.layers[0]}" / "heat_maps.npy")[members].sum(1)
    expected = np.mean([one / (abs(one).max() or 1) for one in first], 0)
    assert np.allclose(mean_of_maps(images.heat_maps[0], members), expected, atol=1e-6)


def test_heat_maps_that_the_run_does_not_hold_are_named(examined, net, splits, tmp_path):
    images = ErrorImages.of_finding(examined["causes.root_causes"])
    (best,) = images.heat_maps
    (line,) = (
        line for line in export_clusters(examined, None, tmp_path / "out", heat_maps=True) if "heat maps" in line
    )
    others = [name for number, name in enumerate(images.layers) if number != best]
    assert line == f"no heat maps of {', '.join(others)}: they were not kept; examine causes with keep: all"
    assert len(list((tmp_path / "out" / "layers").rglob("heat_maps.npy"))) == 1
    run = causes_of(net, splits, tmp_path, keep="all", sketch=16)
    lines = export_clusters(run, None, tmp_path / "sketched", heat_maps=True)
    assert (
        "no heat maps of 0, 4: they were kept as sketches; examine causes with sketch: null for whole heat maps"
        in lines
    )
    export_clusters(examined, None, tmp_path / "plain")
    assert not list((tmp_path / "plain" / "layers").rglob("heat_map*"))


@pytest.fixture
def photographs(tmp_path):
    rng = np.random.default_rng(0)
    for name in CLASSES:
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(12):
            pixels = rng.integers(0, 256, (8, 8), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{number}.bmp")
    return ImageFolder(tmp_path / "photos", mode="L")


def test_files_are_copied_as_they_are_and_all_results_written(photographs, tmp_path):
    run, subject = Run.create(tmp_path / "run"), Subject(TinyNet().eval(), classes=CLASSES, scores="logits")
    asked = steps({"replicates": 0, "clusters": 3})
    Plan.of([*asked, train_results({})]).run(subject, {"test": photographs, "train": photographs}, run)
    assert export_clusters(run, photographs, tmp_path / "out") == []
    table = run["causes.root_causes"].table.to_pylist()
    copied = min((tmp_path / "out" / "cluster-01").glob("*.bmp"))
    assert copied.read_bytes() == (tmp_path / "photos" / table[0]["medoid"]).read_bytes()
    train, test = (rows_of(tmp_path / "out" / f"{split}_results.csv") for split in ("train", "test"))
    assert train == test
    assert list(test[0]) == ["id", "target", "prediction", "correct"]
    assert all((row["target"] == row["prediction"]) == (row["correct"] == "True") for row in test)
    assert {row["target"] for row in test} == set(CLASSES)


def test_a_folder_per_confirmed_cause_with_wrong_and_correct_images(tmp_path):
    net, test = Subject(eye_net.model(), classes=eye_net.CLASSES, scores="logits"), eye_net.test()
    run = Run.create(tmp_path / "run")
    Plan.of(steps({"replicates": 0, "pictures": 0})).run(net, {"test": test}, run)
    export_clusters(run, test, tmp_path / "out")
    causes = [row for row in run["causes.error_slices"].table.to_pylist() if row["confirmed"]]
    folders = sorted(path for path in (tmp_path / "out" / "causes").iterdir() if path.is_dir())
    assert len(folders) == len(causes) > 0
    assert [row["rule"] for row in rows_of(tmp_path / "out" / "causes" / "causes.csv")] == [
        row["rule"] for row in causes
    ]
    place = run["causes.error_slices"].arrays["image_slice"]
    for folder, row in zip(folders, causes, strict=True):
        assert (folder / "sentence.txt").read_text(encoding="utf-8").strip() == row["summary"]
        images = rows_of(folder / "images.csv")
        assert len(images) == (place == row["slice"]).sum()
        wrong = [one for one in images if one["correct"] == "False"]
        assert len(list((folder / "wrong").iterdir())) == min(len(wrong), 100)
        assert len(list((folder / "correct").iterdir())) == len(row["correct_examples"].split(", "))


def test_nothing_is_replaced_and_nothing_half_written(examined, splits, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(ConfigError, match="exists already"):
        export_clusters(examined, splits["test"], tmp_path / "out")
    with pytest.raises(DataError, match="give the test data that the Run examined"):
        export_clusters(examined, splits["train"], tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_numbers_are_written_beside_their_targets(tmp_path):
    from tests.causes.conftest import images

    targets = np.random.default_rng(3).normal(size=(40, 2)).astype(np.float32)
    run, source = Run.create(tmp_path / "run"), images("i", 40, targets)
    Plan.of(steps({"replicates": 0})).run(Subject(TinyNet(2).eval(), task="regression"), {"test": source}, run)
    export_clusters(run, source, tmp_path / "out")
    first = rows_of(tmp_path / "out" / "test_results.csv")[0]
    assert [float(part) for part in first["target"].split()] == pytest.approx(targets[0], rel=1e-5)
    assert list(first) == ["id", "target", "prediction", "correct", "error"]


def test_file_names_lead_nowhere_else():
    assert file_name("../../etc/passwd") == ("passwd", "")
    assert file_name("..") == ("image", "")
    assert file_name("a\\b\\c:d.PNG") == ("c_d", ".png")
    assert len(file_name("x" * 500)[0]) == 60
