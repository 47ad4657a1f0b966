"""`weakspot init`: what it finds, what it writes, and that what it writes runs at once."""

import io
import json
import re
import shutil

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from safetensors.torch import save_file
from torch.export import Dim, export, save

from tests.models.evil_archives import members_of, places, zipped
from tests.models.nets import net
from weakspot.asking.config import read_config
from weakspot.asking.loading import load
from weakspot.core.run import Run

NETS = """
from types import SimpleNamespace

import torch
from torch import nn


class Colours(nn.Module):
    '''Answers with the brightest channel; sees differences only on the scale from 0 to 255.'''

    def __init__(self, scale=1.0):
        super().__init__()
        self.scale = scale
        self.conv, self.hidden, self.fc = nn.Conv2d(3, 6, 1, bias=False), nn.Linear(6, 12), nn.Linear(12, 3)
        with torch.no_grad():
            self.conv.weight.copy_(torch.eye(3).repeat(2, 1)[:, :, None, None])
            self.hidden.weight.copy_(torch.eye(3).repeat(4, 2) * self.scale)
            self.hidden.bias.fill_(-100 if scale == 1.0 else 0)
            self.fc.weight.copy_(torch.eye(3).repeat(1, 4) * self.scale)
            self.fc.bias.zero_()

    def forward(self, images):
        return self.fc(torch.relu(self.hidden(self.conv(images).mean((2, 3)))))


class Sure(Colours):
    def forward(self, images):
        return super().forward(images).softmax(1)


class Turned(Colours):
    '''Its outputs are red, blue and green, in that order.'''

    def forward(self, images):
        return super().forward(images)[:, [2, 0, 1]]


class Named(Turned):
    '''The same, and it says so.'''

    def __init__(self, names=("red", "blue", "green")):
        super().__init__(scale=2.0)
        self.config = SimpleNamespace(id2label=dict(enumerate(names)), label2id=None)


class Wrapped(Colours):
    def forward(self, images):
        return {"logits": super().forward(images), "images": images}


class WantsLast(Colours):
    def forward(self, images):
        assert images.shape[-1] == 3, "channels come last"
        return super().forward(images.permute(0, 3, 1, 2))


def labels():
    return Several()


class Several(Colours):
    pass


def broken(images):
    raise ValueError("out of order")


def brightest():
    return lambda images: images.mean((2, 3))


def scaled(images):
    return images * 255
"""
CLASSES = ("blue", "green", "red")


@pytest.fixture
def place(tmp_path, monkeypatch, project):
    """An empty folder with nets beside, and images of three colours in folders per class."""
    module = f"init_{project.module}"
    (tmp_path / f"{module}.py").write_text(NETS)
    generator = np.random.default_rng(0)
    for split in ("train", "test"):
        for number, name in enumerate(CLASSES):
            folder = tmp_path / split / name
            folder.mkdir(parents=True)
            for index in range(12):
                picture = generator.integers(0, 120, (6, 6, 3)).astype(np.uint8)
                picture[..., number] += 100
                Image.fromarray(picture).save(folder / f"{index}.png")
    project.file.unlink()
    monkeypatch.chdir(tmp_path)
    return module


def test_what_it_writes_runs_at_once(weakspot, place, tmp_path):
    code, out, err = weakspot(
        "init", "--model", f"{place}:Colours", "--arguments", "{scale: 2}", "--train", "train", "--test", "test"
    )
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "inputs: 3×6×6, values from 0 to 0.8588",
        out.splitlines()[1],
        "classes: 3",
        "layers: 3 convolutions and linears; penultimate is the input of fc, 12 neurons",
        "accuracy: 1.00 on 36 samples of test",
        "scores: the outputs do not look like probabilities; if they are logits, write scores: logits",
        "wrote weakspot.yaml; next: weakspot examine weakspot.yaml --limit 500",
    ]
    assert re.fullmatch(r"outputs: 3, values from \S+ to \S+", out.splitlines()[1])
    text = (tmp_path / "weakspot.yaml").read_text()
    assert text.startswith("# What weakspot examines")
    written = yaml.safe_load(text)
    assert written["subject"] == {
        "model": f"{place}:Colours", "arguments": {"scale": 2}, "task": "classification", "classes": list(CLASSES),
        "device": "auto",
    }  # fmt: skip
    assert written["data"] == {"train": "train", "test": "test"}
    assert set(written["ask"]) == {"coverage", "robustness", "classes", "causes", "pictures"}
    assert written["ask"]["coverage"] == {"criteria": ["nc", "kmnc", "idc"]}  # confidence needs to know the scores
    code, _, err = weakspot("examine", "weakspot.yaml", "--limit", "20", "--quiet")
    assert (code, err) == (0, "")
    assert "coverage.neuron_coverage" in Run.open(tmp_path / "runs" / "weakspot").names()


def test_it_writes_over_nothing_unless_told(weakspot, place, tmp_path):
    (tmp_path / "weakspot.yaml").write_text("precious")
    call = ("init", "--model", f"{place}:Colours", "--test", "test")
    code, out, err = weakspot(*call)
    assert (code, out) == (2, "")
    assert "weakspot.yaml already exists: choose another with --output, or write over it with --force" in err
    assert (tmp_path / "weakspot.yaml").read_text() == "precious"
    assert weakspot(*call, "--force")[0] == 0
    assert "precious" not in (tmp_path / "weakspot.yaml").read_text()


def test_a_normalisation_mistake_is_told_and_nothing_is_changed_silently(weakspot, place, tmp_path):
    code, out, _ = weakspot("init", "--model", f"{place}:Colours", "--test", "test")
    assert code == 0
    warning = out.splitlines()[-2]
    assert re.match(
        r"warning: accuracy is 0.33, but 1.00 with inputs from 0 to 255: .*write preprocess: {scale: 255.0}", warning
    )
    text = (tmp_path / "weakspot.yaml").read_text()
    assert "preprocess" not in yaml.safe_load(text)["subject"]
    assert re.search(r"# preprocess: {scale: 255.0} +# accuracy 1.00 instead of 0.33 on 36 samples", text)
    call = ("init", "--model", f"{place}:Colours", "--test", "test", "--force", "--preprocess")
    for given in ("{scale: 255}", f"{place}:scaled"):
        code, out, _ = weakspot(*call, given)
        assert code == 0
        assert "accuracy: 1.00" in out
        assert "warning" not in out
    assert weakspot("examine", "weakspot.yaml", "--limit", "8", "--quiet")[0] == 0


def test_what_a_model_of_hugging_face_says_is_taken(weakspot, place, tmp_path):
    """Names, normalisation and size from the saved folder; its one output needs no name."""
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, image_size=8, patch_size=4,
        id2label={0: "red", 1: "green", 2: "blue"}, label2id={"red": 0, "green": 1, "blue": 2},
    )  # fmt: skip
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path / "vit")
    transformers.ViTImageProcessorPil(size={"height": 8, "width": 8}, resample=3).save_pretrained(tmp_path / "vit")
    code, out, err = weakspot(
        "init", "--model", "transformers:AutoModelForImageClassification.from_pretrained", "--arguments",
        "{pretrained_model_name_or_path: vit}", "--train", "train", "--test", "{path: test, mode: RGB}",
    )  # fmt: skip
    assert code == 0, err
    taken = "preprocess: {mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}, size: [8, 8], interpolation: bicubic"
    assert f"weakspot: taken from preprocessor_config.json of vit: {taken}" in err
    assert "weakspot: classes are in the order of the model's config: ['red', 'green', 'blue']" in err
    assert "inputs: 3×8×8" in out
    written = yaml.safe_load((tmp_path / "weakspot.yaml").read_text())
    assert written["subject"]["classes"] == ["red", "green", "blue"]
    assert written["subject"]["preprocess"] == {"mean": [0.5] * 3, "std": [0.5] * 3}
    assert written["data"]["test"] == {"path": "test", "mode": "RGB", "size": [8, 8], "interpolation": "bicubic"}
    assert written["data"]["train"] == {"path": "train", "size": [8, 8], "interpolation": "bicubic"}
    text = (tmp_path / "weakspot.yaml").read_text().replace("preprocess:", "# preprocess:")
    (tmp_path / "weakspot.yaml").write_text(text)
    _, _, err = weakspot("layers", "weakspot.yaml")
    code, _, err = weakspot("plan", "weakspot.yaml")
    assert code == 0 and "preprocessor_config.json of vit has inputs normalised, {mean: [0.5, 0.5, 0.5]" in err


def test_an_attacked_split(weakspot, place, tmp_path):
    call = ("init", "--model", f"{place}:Colours", "--arguments", "{scale: 2}", "--test", "test", "--scores", "logits")
    attack = "{path: test, attack: fgsm, arguments: {epsilon: 0.1}}"
    shutil.copy(f"{place}.py", (tmp_path / "other").mkdir() or "other")
    code, _, err = weakspot(*call, "--pool", attack, "--bounds", "[0, 1]", "--output", "other/weakspot.yaml")
    assert code == 0, err
    written = yaml.safe_load((tmp_path / "other/weakspot.yaml").read_text())
    assert written["ask"]["coverage"] == {"criteria": ["nc"], "confidence": True}  # there are no training data
    assert written["data"]["test"] == "../test"
    assert written["data"]["pool"] == {"path": "test", "attack": "fgsm", "arguments": {"epsilon": 0.1}}
    assert weakspot("examine", "other/weakspot.yaml", "--quiet")[0] == 0


def test_all_normalisations_are_told_with_their_accuracy(weakspot, place):
    _, out, _ = weakspot("init", "--model", f"{place}:Colours", "--test", "test")
    lines = out.splitlines()
    first = lines.index("accuracy on the same 36 samples, with inputs")
    told = [re.fullmatch(r"  (\d\.\d\d) (.+)", line) for line in lines[first + 1 : -2]]
    assert [match[2] for match in told][:1] == ["from 0 to 255"] and len(told) == 10
    assert [match[1] for match in told] == sorted((match[1] for match in told), reverse=True)


def test_outputs_that_the_model_names_are_matched_by_name(weakspot, place, tmp_path):
    code, out, err = weakspot("init", "--model", f"{place}:Named", "--train", "train", "--test", "test")
    assert code == 0 and "accuracy: 1.00 on 36 samples" in out and "warning" not in out
    assert err == "weakspot: classes are in the order of the model's config: ['red', 'blue', 'green']\n"
    assert yaml.safe_load((tmp_path / "weakspot.yaml").read_text())["subject"]["classes"] == ["red", "blue", "green"]
    assert weakspot("examine", "weakspot.yaml", "--limit", "8", "--quiet") == (0, "", "")


def test_a_file_without_classes_is_read_in_the_models_order_too(place, tmp_path):
    (tmp_path / "own.yaml").write_text(f"subject: {{model: '{place}:Named'}}\ndata: {{test: test}}\n")
    loaded = load(read_config(tmp_path / "own.yaml"), tmp_path)
    assert loaded.subject.classes == ("red", "blue", "green")
    batch = loaded.data["test"].read(np.arange(36))
    assert torch.equal(loaded.subject.forward(batch.inputs).argmax(1), batch.targets)


@pytest.mark.parametrize(
    ("names", "more", "message"),
    [
        ("[red, blue, grey]", [], "names its outputs ['red', 'blue', 'grey'], and the data have other classes, too"),
        ("[red, blue, green]", ["--classes", "3"], "leave classes out, or name them in the order of the outputs"),
    ],
)
def test_outputs_that_cannot_be_matched_are_refused(weakspot, place, tmp_path, names, more, message):
    code, _, err = weakspot(
        "init", "--model", f"{place}:Named", "--arguments", f"{{names: {names}}}", "--test", "test", *more
    )
    assert code == 2 and message in err and not (tmp_path / "weakspot.yaml").exists()


def test_outputs_of_other_names_or_in_another_order_are_warned_of(weakspot, place):
    call = ("init", "--model", f"{place}:Named", "--test", "test", "--force")
    code, _, err = weakspot(*call, "--arguments", "{names: [x, y, z]}")
    assert code == 0 and "names its outputs ['x', 'y', 'z'], and the data have the classes ['blue'" in err
    code, out, err = weakspot(*call, "--classes", "[blue, green, red]")
    assert code == 0 and "weakspot: warning: classes are ['blue', 'green', 'red'], and the model's config names" in err
    assert "warning: accuracy is 0.00, but 1.00 if the outputs are the classes in another order" in out


def test_classes_in_another_order_than_the_outputs_are_noticed_by_the_answers(weakspot, place):
    call = ("init", "--model", f"{place}:Turned", "--arguments", "{scale: 2}", "--test", "test", "--force")
    _, out, _ = weakspot(*call)
    assert re.search(r"accuracy is 0.00, but 1.00 if the outputs are .*: \['red', 'blue', 'green'\]\. If", out)
    _, out, _ = weakspot(*call, "--classes", "[red, blue, green]")
    assert "accuracy: 1.00" in out and "another order" not in out


def test_probabilities_are_asked_about_and_not_assumed(weakspot, place, tmp_path):
    _, out, _ = weakspot("init", "--model", f"{place}:Sure", "--arguments", "{scale: 2}", "--test", "test")
    assert "scores: the outputs look like probabilities; if they are probabilities, write scores: probabilities" in out
    assert "scores" not in yaml.safe_load((tmp_path / "weakspot.yaml").read_text())["subject"]
    _, out, _ = weakspot(
        "init", "--model", f"{place}:Sure", "--arguments", "{scale: 2}", "--test", "test", "--scores", "probabilities",
        "--force",
    )  # fmt: skip
    assert "scores" not in out
    assert yaml.safe_load((tmp_path / "weakspot.yaml").read_text())["subject"]["scores"] == "probabilities"


def test_weights_and_another_folder(weakspot, place, tmp_path):
    from torch import nn  # noqa: F401 - the module of the project needs it

    namespace = {}
    exec((tmp_path / f"{place}.py").read_text(), namespace)
    save_file(namespace["Colours"](scale=2.0).state_dict(), tmp_path / "w.safetensors")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / f"{place}.py").write_text(NETS)
    code, out, err = weakspot(
        "init", "--model", f"{place}:Colours", "--weights", "w.safetensors", "--test", "test",
        "--output", "deep/my.yaml", "--classes", "[blue, green, red]", "--bounds", "[0, 1]", "--device", "cpu",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "accuracy: 1.00" in out
    written = yaml.safe_load((tmp_path / "deep" / "my.yaml").read_text())
    assert (written["subject"]["weights"], written["data"]["test"]) == ("../w.safetensors", "../test")
    assert written["subject"]["bounds"] == [0, 1]
    assert weakspot("examine", "deep/my.yaml", "--limit", "8", "--quiet")[0] == 0


def test_an_exported_model(weakspot, place, tmp_path):
    namespace = {}
    exec((tmp_path / f"{place}.py").read_text(), namespace)
    example = (torch.zeros(2, 3, 6, 6),)
    save(export(namespace["Colours"](2.0).eval(), example, dynamic_shapes=({0: Dim("n")},)), tmp_path / "free.pt2")
    save(export(namespace["Colours"](2.0).eval(), example), tmp_path / "fixed.pt2")
    code, out, err = weakspot("init", "--model", "free.pt2", "--test", "test")
    assert (code, err) == (0, "")
    assert "penultimate is the input of fc, 12 neurons" in out
    code, out, err = weakspot("init", "--model", "fixed.pt2", "--test", "test", "--force")
    assert code == 0
    assert err.startswith("weakspot: fixed.pt2 was exported for batches of 2: samples are run 2 at a time")
    text = (tmp_path / "weakspot.yaml").read_text()
    assert re.search(r"^  # coverage: .*  # .*", text, re.MULTILINE), (
        "what cannot be asked is commented out, with the reason"
    )
    assert list(yaml.safe_load(text)["ask"]) == ["robustness", "error_slices", "pictures"]
    assert weakspot("examine", "weakspot.yaml", "--limit", "8", "--quiet")[0] == 0


def test_an_archive_that_would_run_code_is_refused_and_not_run(weakspot, place, tmp_path):
    made, mark = io.BytesIO(), tmp_path / "mark"
    save(export(net(), (torch.zeros(2, 3, 6, 6),), dynamic_shapes=({0: Dim("n")},)), made)
    members, graph = members_of(made.getvalue()), "models/model.json"
    evil = json.loads(members[graph])
    for found in places(evil, "expr_str"):
        found["expr_str"] = f"__import__('os').system('mkdir {mark}')"
    (tmp_path / "weakspot.yaml").write_text(
        "subject: {model: evil.pt2}\ndata: {test: test}\nask: {neuron_coverage: {}}\n"
    )
    both = [*{**members, graph: json.dumps(evil)}.items()]
    for before in range(len(both) + 1):  # which of the two torch takes depends on where they stand
        (tmp_path / "evil.pt2").write_bytes(zipped([*both[:before], (graph, members[graph]), *both[before:]]))
        code, out, err = weakspot("layers", tmp_path / "weakspot.yaml")
        assert not mark.exists()
        assert (code, out) == (2, "")
        assert "evil.pt2 is not an archive of torch.export.save: it holds 'models/model.json' twice" in err


def test_an_output_by_name(weakspot, place):
    call = ("init", "--model", f"{place}:Wrapped", "--arguments", "{scale: 2}", "--test", "test")
    code, _, err = weakspot(*call)
    assert code == 2
    assert "a mapping with 'logits', 'images', expected a tensor: say which one with output=" in err
    assert "(here with --model-output)" in err
    assert weakspot(*call, "--model-output", "logits")[0] == 0


def test_a_model_that_wants_the_channels_last(weakspot, place, tmp_path):
    call = ("init", "--model", f"{place}:WantsLast", "--arguments", "{scale: 2}", "--test", "test")
    code, _, err = weakspot(*call)
    assert code == 2
    assert "your own code failed" in err
    assert "it does run with the channels of the samples elsewhere: --preprocess '{channels_last: true}'" in err
    assert not (tmp_path / "weakspot.yaml").exists()
    assert weakspot(*call, "--preprocess", "{channels_last: true}")[0] == 0


def test_images_that_look_like_frames_are_warned_of(weakspot, place, tmp_path):
    rng = np.random.default_rng(0)
    coarse = torch.from_numpy(rng.random((30, 3, 6, 6), dtype=np.float32))
    films = torch.nn.functional.interpolate(coarse, 24, mode="bicubic").clamp(0, 1).numpy().repeat(4, axis=0)
    films *= rng.uniform(0.8, 1, (120, 1, 1, 1)).astype(np.float32)
    labels = np.arange(120) % 3
    np.savez(tmp_path / "films.npz", x_test=films, y_test=labels)
    np.savez(tmp_path / "stills.npz", x_test=films[::4], y_test=labels[::4])
    told = "100% of 120 images tried look like another of them, like frames or slices of one thing"
    code, out, err = weakspot("init", "--model", f"{place}:Colours", "--test", "films.npz")
    assert code == 0 and told in out + err
    code, out, err = weakspot("init", "--model", f"{place}:Colours", "--test", "stills.npz", "--force")
    assert code == 0 and "look like another of them" not in out + err


def test_data_with_the_channels_last(weakspot, place, tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((8, 6, 6, 3), dtype=np.float32))
    _, _, err = weakspot("init", "--model", f"{place}:Colours", "--test", "x.npy")
    assert "--test '{path: …, channels: last}'" in err
    assert weakspot("init", "--model", f"{place}:Colours", "--test", "{path: x.npy, channels: last}")[0] == 0


def test_a_function_gets_a_name_and_is_asked_about_its_outputs(weakspot, place, tmp_path):
    call = ("init", "--model", f"{place}:brightest", "--scores", "logits", "--train", "train", "--test", "test")
    assert weakspot(*call)[0] == 0
    text = (tmp_path / "weakspot.yaml").read_text()
    written = yaml.safe_load(text)
    assert written["subject"]["fingerprint"] == f"{place}:brightest 1"
    assert set(written["ask"]) == {"robustness", "classes", "error_slices", "pictures"}
    assert written["ask"]["classes"] == {"by": "outputs"}
    assert re.search("  error_slices: {} +# Why does the model fail", text)
    assert "# causes: {}  # causes.root_causes looks inside the model" in text
    assert weakspot("examine", "weakspot.yaml", "--quiet") == (0, "", "")


def test_numbers_are_asked_about_as_numbers(weakspot, place, tmp_path):
    x = np.random.default_rng(0).random((12, 3, 6, 6), dtype=np.float32)
    np.savez(tmp_path / "d.npz", x_test=x, y_test=x.mean((2, 3)), x_train=x, y_train=x.mean((2, 3)))
    call = ("init", "--model", f"{place}:Colours", "--train", "d.npz", "--test", "d.npz")
    code, _, err = weakspot(*call)
    assert code == 2
    assert "expected one class number per sample" in err and "for numbers task='regression'" in err
    assert weakspot(*call, "--task", "regression")[0] == 0
    text = (tmp_path / "weakspot.yaml").read_text()
    assert "scores" not in text
    assert re.search(r"# robustness: {neighbours: {brightness: 0.2, .*}, tolerance: 3}  # .*bounds", text)
    assert weakspot(*call, "--task", "regression", "--bounds", "[0, 1]", "--force")[0] == 0
    text = (tmp_path / "weakspot.yaml").read_text()
    assert yaml.safe_load(text)["ask"]["robustness"]["tolerance"] == 3
    assert weakspot("examine", "weakspot.yaml", "--quiet") == (0, "", "")


def test_labels_need_to_know_what_the_outputs_are(weakspot, place, tmp_path):
    x = np.random.default_rng(0).random((12, 3, 6, 6), dtype=np.float32)
    np.savez(tmp_path / "d.npz", x_test=x, y_test=(x.mean((2, 3)) > 0.5).astype(np.int64))
    call = ("init", "--model", f"{place}:Colours", "--test", "d.npz", "--task", "multilabel")
    code, _, err = weakspot(*call)
    assert code == 2
    assert "give --scores logits or --scores probabilities" in err
    assert weakspot(*call, "--scores", "logits")[0] == 0
    assert weakspot("examine", "weakspot.yaml", "--quiet")[0] == 0
    assert (
        weakspot(*call, "--scores", "logits", "--train", "{path: d.npz, inputs: x_test, targets: y_test}", "--force")[0]
        == 0
    )
    assert yaml.safe_load((tmp_path / "weakspot.yaml").read_text())["ask"]["coverage"] == {"criteria": ["nc", "kmnc"]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "nowhere:net", "--test", "test"], "cannot import 'nowhere'"),
        (["--model", "PLACE:Colors", "--test", "test"], "has no 'Colors': did you mean 'Colours'?"),
        (["--model", "PLACE:Colours", "--test", "nowhere"], "is not a folder"),
        (
            ["--model", "PLACE:Colours", "--test", "test", "--arguments", "{scal: 1}"],
            "cannot be called with {'scal': 1}",
        ),
        (
            ["--model", "PLACE:Colours", "--test", "test", "--arguments", "{scale"],
            "--arguments:1: this is not valid YAML",
        ),
        (["--model", "PLACE:Colours", "--test", "test", "--task", "detection"], "subject.task is 'detection'"),
        (
            ["--model", "PLACE:Colours", "--test", "test", "--classes", "4"],
            "gives 3 scores per sample, and 4 classes",
        ),
        (
            ["--model", "PLACE:Colours", "--test", "."],
            "test has the classes ['test', 'train'], and the model gives 3 scores",
        ),
        (["--model", "PLACE:Colours", "--test", "test", "--weights", "none.pt"], "there is no such file"),
        (["--model", "PLACE:Colours", "--test", "test", "--preprocess", "PLACE:broken"], "ValueError: out of order"),
        (["--model", "PLACE:Colours"], "Missing option '--test'"),
        (["--test", "test"], "Missing option '--model'"),
    ],
)
def test_what_cannot_be_begun_with_writes_nothing(weakspot, place, tmp_path, options, message):
    code, out, err = weakspot("init", *(option.replace("PLACE", place) for option in options))
    assert (code, out) == (2, "")
    assert err.startswith("weakspot: ")
    assert message in err
    assert "Traceback" not in err
    assert not (tmp_path / "weakspot.yaml").exists()


def test_names_that_could_do_harm_survive_the_file(weakspot, place, tmp_path):
    odd = ["a: b # c", "[red]x[/]", "line\nbreak"]
    x = np.random.default_rng(0).random((9, 3, 6, 6), dtype=np.float32)
    np.savez(tmp_path / "d.npz", x_test=x, y_test=np.arange(9) % 3)
    code, _, err = weakspot("init", "--model", f"{place}:Colours", "--test", "d.npz", "--classes", json.dumps(odd))
    assert (code, err) == (0, "")
    assert yaml.safe_load((tmp_path / "weakspot.yaml").read_text())["subject"]["classes"] == odd
