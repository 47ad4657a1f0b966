"""Error slices end to end: what is planted is confirmed, chance is not, and the Finding says which is which."""

import json

import numpy as np
import pytest
import torch

from weakspot import Plan, Run, Subject, examine
from weakspot.causes import ErrorSlices
from weakspot.causes.outputs import worst
from weakspot.causes.room import steps
from weakspot.causes.slice_outputs import ERROR_SLICES
from weakspot.causes.slice_views import HEAT_VALUES, SOURCES, WITHOUT_RELEVANCE, heat_layer, heat_view
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.layers import Layer
from weakspot.data import digits, eye_net
from weakspot.data.sources import ArraySource, WithMetadata
from weakspot.report.drawings import figures
from weakspot.report.headlines import answer
from weakspot.report.next_steps import next_steps
from weakspot.slices import SliceRule

CLASSES = ("left", "right", "both")
COUNT = 900


def predicts(images):
    """A network that reads its answer from three pixels, and mistakes a class for the one before in the dark."""
    seen = images[:, 0, 0, :3]
    return torch.where((images.mean((1, 2, 3)) < 0.25)[:, None], seen.roll(-1, 1), seen)


def black_box(forward=predicts, **options):
    options = {"classes": CLASSES, "scores": "logits", "fingerprint": "corners 1", **options}
    return Subject(forward, **options)


def source(seed=0, *, dark=0.2, mistakes=0.05, targets=None, metadata=None):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, COUNT)
    light = np.where(rng.random(COUNT) < dark, 0.2, 0.8)
    images = rng.random((COUNT, 1, 8, 8), dtype=np.float32) * light[:, None, None, None].astype(np.float32)
    images[:, 0, 0, :3] = 0
    shown = np.where(rng.random(COUNT) < mistakes, (labels + 1) % 3, labels)
    images[np.arange(COUNT), 0, 0, shown] = 1
    ids = [f"s{seed}-{number:04d}" for number in range(COUNT)]
    data = ArraySource(images, labels if targets is None else targets, ids=ids)
    known = {"id": ids, "speed": rng.random(COUNT).tolist(), "weather": rng.choice(["fog", "sun"], COUNT).tolist()}
    return WithMetadata(data, {**known, **(metadata or {})})


def slices_of(data, subject=None, **options):
    return examine(subject or black_box(), data, [ErrorSlices(**options)])[0]


@pytest.fixture(scope="module")
def planted():
    return slices_of(source())


def test_a_planted_cause_is_confirmed_and_named(planted):
    row, *others = planted.table.to_pylist()
    assert row["rule"].startswith("dark (brightness < 0.")
    assert row["status"] == "confirmed" and row["confirmed"] and row["kind"] == "trait"
    assert row["low"] <= row["error_rate"] <= row["high"] and row["error_rate"] > 0.6 > 0.1 > row["elsewhere"]
    assert (
        row["summary"].startswith(row["rule"] + ": ") and f"of all {planted.summary['errors']} errors" in row["summary"]
    )
    assert "low contrast (contrast median" in row["contrast"]  # an image of dark noise is flat, too
    assert not any(other["confirmed"] and other["kind"] == "trait" for other in others)
    assert planted.summary["confirmed"].value == 1


def test_the_rule_applies_to_new_images(planted):
    rule = SliceRule.from_json(json.loads(planted.table["conditions"][0].as_py()))
    new = slices_of(source(seed=7))
    names = new.arrays["measure_names"].tolist()
    columns = {name: new.arrays["measures"][:, number] for number, name in enumerate(names)}
    inputs = source(seed=7).read(np.arange(COUNT)).inputs
    order = np.argsort(source(seed=7).ids)
    dark = (inputs.mean((1, 2, 3)) < 0.25).numpy()[order]
    assert (rule.holds(columns) == dark).mean() > 0.98


def test_examples_are_members_wrong_and_correct(planted):
    row = planted.table.to_pylist()[0]
    inputs = source().read(np.arange(COUNT))
    outputs = predicts(inputs.inputs).argmax(1)
    right = dict(zip(inputs.ids, (outputs == inputs.targets).tolist(), strict=True))
    dark = dict(zip(inputs.ids, (inputs.inputs.mean((1, 2, 3)) < 0.25).tolist(), strict=True))
    wrong, correct = row["incorrect_examples"].split(", "), row["correct_examples"].split(", ")
    assert len(wrong) == len(correct) == 5
    assert not any(right[name] for name in wrong) and all(right[name] for name in correct)
    assert all(dark[name] for name in wrong + correct)


def test_the_finding_is_as_declared_and_is_drawn(planted):
    assert planted.outputs == ERROR_SLICES and ERROR_SLICES.problems(planted) == []
    drawn = figures(planted, list(CLASSES))
    assert len(drawn) == 1 and "brightness" in drawn[0].svg and not drawn[0].problem
    of_image = dict(zip(planted.arrays["image_id"].tolist(), planted.arrays["image_slice"].tolist(), strict=True))
    assert sum(place == 1 for place in of_image.values()) == planted.table["images"][0].as_py()


def text_of(finding):
    return "".join(part.text for part in answer("causes", [finding]).sentence)


def test_it_is_the_answer_of_the_room(planted):
    said = text_of(planted)
    assert said.startswith("Rules for errors confirmed on held-out data: 1. The first: dark (brightness < ")
    (first,) = worst([planted], "classification")
    assert first.title.startswith("Errors of one kind: dark (brightness") and "confirmed" in first.text
    advice = [step.text for step in next_steps([planted])]
    assert any("do not train on them" in text and "dark (brightness" in text for text in advice)


def test_shuffled_errors_give_no_cause_and_what_is_left_is_called_a_suspicion():
    confirmed, words = 0, []
    for seed in range(40):
        found = slices_of(source(seed, dark=0.0, mistakes=0.2), depth=2)
        confirmed += found.summary["confirmed"].value + found.summary["confusions"].value > 0
        rows = [] if found.table is None else found.table.to_pylist()
        words += [row["status"] for row in rows]
        assert not any("cause" in str(row) for row in rows if row["status"] == "suspicion")
        assert found.summary["confirmed"].value or "No cause of the" in text_of(found)
    assert confirmed <= 40 * 0.1  # one in twenty is what the test promises
    assert set(words) <= {"confirmed", "suspicion"}


@pytest.mark.parametrize("seed", range(5))
def test_labels_at_random_give_no_cause(seed):
    labels = np.random.default_rng(100 + seed).choice(3, COUNT, p=[0.6, 0.3, 0.1])
    found = slices_of(source(seed, targets=labels))
    assert found.table is None and found.summary["confirmed"].value == 0
    assert found.summary["agreement"].value < 0.2
    assert "hardly better than chance" in text_of(found)


@pytest.mark.parametrize("seed", range(5))
def test_an_untrained_network_gives_no_cause(seed):
    torch.manual_seed(seed)
    found = slices_of(digits.test(), Subject(digits.DigitNet(), classes=digits.CLASSES, scores="logits"))
    assert found.summary["confirmed"].value == found.summary["confusions"].value == 0


def test_what_says_the_error_is_left_out():
    data = source()
    batch = data.read(np.arange(COUNT))
    outputs = predicts(batch.inputs).argmax(1)
    known = {
        "attack_success": (outputs != batch.targets).tolist(),
        "verdict": ["bad" if wrong else "good" for wrong in (outputs != batch.targets).tolist()],
        "answer": [CLASSES[number] for number in outputs.tolist()],
        "label": batch.targets.tolist(),
        "boring": list(range(COUNT)),
    }
    found = slices_of(source(metadata=known), ignore=("boring",))
    reasons = dict(zip(found.arrays["left_out"].tolist(), found.arrays["left_out_why"].tolist(), strict=True))
    assert set(reasons) == set(known)
    assert reasons["verdict"] == "it says which images are predicted incorrectly"
    assert reasons["answer"] == "it is the prediction under another name"
    assert reasons["label"] == "it is the label under another name"
    assert found.table["rule"][0].as_py().startswith("dark")


@pytest.fixture(scope="module")
def eyes():
    subject = Subject(eye_net.model(), classes=eye_net.CLASSES, scores="logits")
    return slices_of(eye_net.test(), subject, measures=False, ignore=tuple(eye_net.test().read(np.array([0])).metadata))


def test_a_model_that_can_be_looked_into_has_regions_that_apply_to_new_images(eyes):
    assert eyes.summary["views"].value == "features, layer statistics"
    rows = [row for row in eyes.table.to_pylist() if row["kind"] == "features"]
    assert rows and eyes.arrays["regions"].tolist() == [json.loads(row["conditions"])[0]["trait"] for row in rows]
    assert any(row["confirmed"] for row in rows)
    net, batch = eye_net.model(), eye_net.test()
    inputs = batch.read(np.arange(len(batch.ids)))
    last = [module for module in net.modules() if isinstance(module, torch.nn.Linear | torch.nn.Conv2d)][-1]
    seen = []
    last.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.no_grad():
        net.eval()(inputs.inputs)
    order = np.argsort(np.array(inputs.ids))
    for number, row in enumerate(rows):
        name = json.loads(row["conditions"])[0]["trait"]
        if name.startswith("features"):
            likeness = seen[0].numpy()[order] @ eyes.arrays[f"region_weights-{number:02d}"]
            likeness = (likeness - eyes.arrays["region_offset"][number]).round(6)
            held = SliceRule.from_json(json.loads(row["conditions"])).holds({name: likeness})
            assert abs(held.sum() - row["images"]) <= 1  # a matrix product rounds differently in another order


def test_sources_can_be_chosen_and_a_black_box_has_none_inside(eyes, planted):
    assert planted.summary["views"].value == "outputs" and "regions" not in planted.arrays
    assert eyes.summary["views"].value == "features, layer statistics"
    subject = Subject(eye_net.model(), classes=eye_net.CLASSES, scores="logits")
    alone = slices_of(eye_net.test(), subject, sources=("traits",))
    assert alone.summary["views"].value == "none" and set(alone.table["kind"].to_pylist()) == {"trait"}
    with pytest.raises(ConfigError, match="expected some of traits, confusions, features, layer statistics"):
        ErrorSlices(sources=())


def test_heat_maps_are_a_source_of_the_room_and_say_of_which_layer(tmp_path):
    subject = Subject(eye_net.model(), classes=eye_net.CLASSES, scores="logits")
    asked = steps({"replicates": 0, "pictures": 0, "thumbnail": 0})[:2]
    assert asked[1].options["sources"] == SOURCES and ErrorSlices().sources == WITHOUT_RELEVANCE
    found = Plan.of(asked).run(subject, {"test": eye_net.test()}, Run.create(tmp_path / "run"))[1]
    assert found.summary["views"].value == "features, layer statistics, heat maps"
    layers = [name for name, part in eye_net.model().named_modules() if isinstance(part, torch.nn.Conv2d)]
    assert found.arrays["heat_layer"] == layers[-1]
    regions = found.arrays.get("regions", np.array([]))
    assert len(found.arrays.get("region_likeness", [])) == (len(eye_net.test().ids) if len(regions) else 0)


def test_heat_maps_are_of_unit_length_and_queries_and_keys_are_never_taken():
    named = [("conv", (3, 8, 8)), ("block.attn.q_proj", (4, 16)), ("block.attn.key", (4, 16)), ("block.fc", (4, 16))]
    layers = [Layer(name, 1, "Linear", shape, shape, 1, weighted=True) for name, shape in named]
    assert heat_layer(layers) == "block.fc" and heat_layer(layers[:-1]) == "conv" and heat_layer(layers[1:3]) is None
    maps = heat_view(torch.randn(3, 4, 5, 5, generator=torch.Generator().manual_seed(0)))
    assert maps.shape == (3, 100) and torch.allclose(maps.norm(dim=1), torch.ones(3))
    assert heat_view(torch.ones(2, 64, 8, 8)).shape == (2, HEAT_VALUES) and not heat_view(torch.zeros(1, 2, 3, 3)).any()


def embedded(wrong_at=None):
    """Data whose metadata are an embedding: its first value says where the network of corners is wrong."""
    rng, data = np.random.default_rng(3), source()
    dark = data.read(np.arange(COUNT)).inputs.mean((1, 2, 3)).numpy() < 0.25
    values = rng.normal(size=(COUNT, 6)).astype(np.float32) + 8 * dark[:, None] * np.eye(6, dtype=np.float32)[0]
    if wrong_at is not None:
        values[wrong_at] = np.nan
    return data, values, dark


def test_an_embedding_of_the_users_own_is_a_source(tmp_path):
    data, values, dark = embedded()
    np.savez(tmp_path / "clip.npz", id=np.array(data.ids), clip=values)
    columns = {"id": data.ids, **{f"emb_{number}": values[:, number].tolist() for number in range(6)}}
    options = {"measures": False, "sources": ("features", "embedding")}
    for known, name in (
        (tmp_path / "clip.npz", "clip"),
        (columns, "emb_*"),
        ({"id": data.ids, "clip": values}, "clip"),
    ):
        found = slices_of(WithMetadata(data, known), embedding=(name,), **options)
        row = found.table.to_pylist()[0]
        assert row["confirmed"] and row["rule"].startswith("alike in embedding (embedding 1")
        order = np.argsort(np.array(data.ids))
        assert ((found.arrays["image_slice"] == 1) == dark[order]).mean() > 0.95
        assert "embedding" in found.summary["views"].value


def test_an_embedding_that_is_not_there_or_holds_no_numbers_is_refused():
    data, values, _ = embedded(wrong_at=4)
    with pytest.raises(ConfigError, match=r"embedding names 'clip\*'.*there is speed, weather"):
        slices_of(data, embedding=("clip*",))
    with pytest.raises(ConfigError, match="embedding names 'weather', which holds no numbers"):
        slices_of(data, embedding=("weather",))
    with pytest.raises(DataError, match=f"the embedding of sample {data.ids[4]!r} is not finite"):
        slices_of(WithMetadata(data, {"id": data.ids, "clip": values}), embedding=("clip",))


def test_wrong_labels_are_listed_apart():
    data = eye_net.test()
    batch = data.read(np.arange(len(data.ids)))
    with torch.no_grad():
        predicted = eye_net.model().eval()(batch.inputs).argmax(1).numpy()
    classes = len(eye_net.CLASSES)
    changed = np.arange(len(predicted)) % 40 == 0
    labels = np.where(changed, (predicted + 1) % classes, predicted)
    subject = Subject(eye_net.model(), classes=eye_net.CLASSES, scores="logits")
    found = slices_of(ArraySource(batch.inputs.numpy(), labels, ids=list(batch.ids)), subject)
    told, true = set(found.arrays["doubtful_id"].tolist()), set(np.array(batch.ids)[changed].tolist())
    assert len(told & true) > 0.5 * len(true) and told <= true
    assert found.summary["doubtful_labels"].value == len(told)
    assert any("Check some of the labels" in step.text for step in next_steps([found]))
    assert found.summary["confirmed"].value == 0


def test_a_rule_on_a_measure_says_what_the_metadata_have_of_its_errors(planted):
    brightness = source().read(np.arange(COUNT)).inputs.mean((1, 2, 3)).numpy()
    lamp = brightness + np.random.default_rng(5).normal(0, 0.2, COUNT)
    row = slices_of(source(metadata={"lamp": lamp.tolist()})).table.to_pylist()[0]
    assert (
        row["rule"].startswith("dark (brightness <")
        and "; in the metadata its errors have lamp lower (" in row["summary"]
    )
    assert "in the metadata" not in planted.table["summary"][0].as_py()


def test_without_measures_metadata_alone_are_searched():
    found = slices_of(source(), measures=False)
    assert found.summary["confirmed"].value == 0 and "measures" not in found.arrays
    assert found.summary["searched"].value == 4  # speed, weather, the true and the predicted class


def test_frames_of_one_film_are_in_one_half():
    films = [f"film {number // 9}" for number in range(COUNT)]
    found = slices_of(source(metadata={"film": films}), group="film")
    film_of = dict(zip(source().ids, films, strict=True))
    halves = {}
    for name, half in zip(found.arrays["image_id"].tolist(), found.arrays["image_found_on"].tolist(), strict=True):
        halves.setdefault(film_of[name], set()).add(half)
    assert all(len(half) == 1 for half in halves.values())
    assert found.table["confirmed"][0].as_py()
    assert "film" not in " ".join(found.table["rule"].to_pylist())


def test_numbers_have_slices_as_well():
    data = source()
    batch = data.read(np.arange(COUNT))
    targets = batch.inputs.mean((1, 2, 3))[:, None].numpy()
    numbers = WithMetadata(
        ArraySource(batch.inputs.numpy(), targets, ids=list(batch.ids)),
        {"id": list(batch.ids), **{name: list(column) for name, column in batch.metadata.items()}},
    )
    subject = Subject(lambda images: images.mean((1, 2, 3))[:, None].clamp(min=0.25), task="regression",
                      fingerprint="clamped")  # fmt: skip
    found = slices_of(numbers, subject, threshold=0.05)
    assert found.table["rule"][0].as_py().startswith("dark (brightness")
    assert found.summary["confirmed"].value == 1 and "agreement" not in found.summary
    assert "set_share" not in found.summary, "a threshold was given"
    worst = slices_of(numbers, subject, quantile=0.8)
    assert worst.summary["set_share"].value == pytest.approx(0.2)


class SeesLittleInTheDark(torch.nn.Sequential):
    """Four outputs read from four pixels by a network with layers; in the dark the first is off."""

    def __init__(self):
        super().__init__(torch.nn.Conv2d(1, 1, 1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64, 4))
        with torch.no_grad():
            self[0].weight.fill_(1.0), self[0].bias.fill_(0.0)
            self[3].weight.zero_(), self[3].bias.fill_(0.0)
            self[3].weight[range(4), range(4)] = 1.0

    def forward(self, images):
        dark = images[:, :, 1:].mean((1, 2, 3)) < 0.25
        return super().forward(images) + dark[:, None] * torch.tensor([2.0, 0.0, 0.0, 0.0])


def four_numbers(task):
    rng = np.random.default_rng(1)
    values, light = rng.random((COUNT, 4)).astype(np.float32), np.where(rng.random(COUNT) < 0.2, 0.2, 0.8)
    images = (rng.random((COUNT, 1, 8, 8)) * light[:, None, None, None]).astype(np.float32)
    images[:, 0, 0, :] = 0
    shown = (values > 0.5).astype(np.float32) if task == "multilabel" else values
    images[:, 0, 0, :4] = shown
    targets = (shown > 0.5).astype(np.int64) if task == "multilabel" else shown + rng.normal(0, 0.01, (COUNT, 4))
    targets = targets if task == "multilabel" else targets.astype(np.float32)
    return ArraySource(images, targets, ids=[f"n{number:04d}" for number in range(COUNT)])


@pytest.mark.parametrize(("task", "labels"), [("keypoints", None), ("regression", None), ("multilabel", list("abcd"))])
def test_the_cause_is_a_property_of_the_image_for_every_task(task, labels):
    probe = ErrorSlices(sources=SOURCES, **({} if labels else {"threshold": 1.0}))
    scores = {"scores": "logits", "classes": labels} if labels else {}
    model = torch.nn.Sequential(SeesLittleInTheDark(), Shift(-0.5)) if labels else SeesLittleInTheDark()
    found = examine(Subject(model.eval(), task=task, **scores), four_numbers(task), [probe])[0]
    row = found.table.to_pylist()[0]
    assert row["confirmed"] and row["error_rate"] > 0.3 > 0.1 > row["elsewhere"]
    assert row["rule"].startswith(("dark (brightness < ", "low contrast (contrast < "))  # dark noise is flat as well
    assert "heat maps" in found.summary["views"].value and found.outputs.problems(found) == []
    assert not any("keypoint" in each["rule"] or "output" in each["rule"] for each in found.table.to_pylist())


class Shift(torch.nn.Module):
    """Adds a number."""

    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, values):
        return values + self.by


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"angles": ("sped",)},
            "angles names 'sped', and no column of the metadata is called so: did you mean",
        ),
        ({"angles": ("weather",)}, "angles names 'weather', which holds text"),
        ({"group": "film"}, "group names 'film', and no column of the metadata is called so"),
    ],
)
def test_columns_that_are_not_there_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        slices_of(source(), **options)


def test_options_that_cannot_be_are_refused():
    with pytest.raises(ConfigError, match="expected depth from 1 to 4"):
        ErrorSlices(depth=9)
    with pytest.raises(ConfigError, match="quantile is 2"):
        ErrorSlices(quantile=2)
    with pytest.raises(ConfigError, match="slices is 3: expected options of error_slices"):
        steps({"slices": 3})


def test_the_room_hands_shared_options_to_rules_and_clusters():
    of_slices = steps({"quantile": 0.8, "angles": ("turn",), "seed": 3, "slices": {"depth": 1}})[1]
    assert of_slices.probe is ErrorSlices
    assert [of_slices.options[name] for name in ("quantile", "angles", "seed", "depth")] == [0.8, ("turn",), 3, 1]
    assert len(steps({"slices": False})) == 2
    assert len(Plan.of(steps({})).passes()) == 2  # rules cost no pass of their own
