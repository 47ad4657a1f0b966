"""Whose fault it is: errors of the user's own code are told with their place, names do no harm to what is printed."""

import subprocess
import sys

import numpy as np
import pytest

from weakspot.cli.printing import printable

OWN = """
import torch
from torch import nn

class FailsInForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, inputs):
        return self.fc(inputs) + undefined_name

def fails_at_once():
    raise ValueError("no model today")

def wrong_shape():
    return nn.Sequential(nn.Linear(4, 2))

class OfImages(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 2, 3)

    def forward(self, inputs):
        return self.first(inputs).mean((2, 3))

def fails_to_prepare(inputs):
    return inputs["image"]

def fails_inside_with_type_error(hidden=3):
    return len(3)

def no_source():
    raise KeyError("data.csv")
"""


@pytest.fixture
def own(project):
    with (project.folder / f"{project.module}.py").open("a") as module:
        module.write(OWN)
    return project


def write(own, *, model="net", preprocess="", data="data.npz"):
    subject = f"model: '{own.module}:{model}'" + (f", preprocess: '{own.module}:{preprocess}'" if preprocess else "")
    own.write(f"subject: {{{subject}}}\ndata: {{test: {data}}}\nask: {{neuron_coverage: }}\n")


@pytest.mark.parametrize(
    ("given", "function", "message"),
    [
        ({"model": "FailsInForward"}, "forward", "NameError: name 'undefined_name' is not defined"),
        ({"model": "fails_at_once"}, "fails_at_once", "ValueError: no model today"),
        ({"model": "fails_inside_with_type_error"}, "fails_inside_with_type_error", "TypeError: object of type 'int'"),
        ({"preprocess": "fails_to_prepare"}, "fails_to_prepare", "IndexError: "),
        ({"data": "'{module}:no_source'"}, "no_source", "KeyError: 'data.csv'"),
    ],
)
def test_an_error_in_ones_own_code_is_told_with_its_place(weakspot, own, given, function, message):
    write(own, **{key: value.format(module=own.module) for key, value in given.items()})
    code, out, err = weakspot("examine", own.file)
    assert (code, out) == (2, "")
    told = err.splitlines()[-1]
    assert told.startswith("weakspot: ")
    assert f"your own code failed at {own.folder / own.module}.py:" in told
    assert f", in {function}: {message}" in told
    assert "Traceback" not in err
    assert not own.run.exists()


def test_a_model_that_cannot_take_the_samples(weakspot, own):
    write(own, model="wrong_shape")
    _, _, err = weakspot("examine", own.file)
    assert "the model cannot take these inputs: RuntimeError: mat1 and mat2 shapes cannot be multiplied" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(("shape", "channels"), [((8, 9, 3), "last"), ((8, 9), "none")])
def test_images_whose_channels_are_elsewhere(weakspot, own, shape, channels):
    np.savez(own.folder / "images.npz", x_test=np.zeros((4, *shape), np.float32), y_test=np.zeros(4, np.int64))
    write(own, model="OfImages", data="images.npz")
    code, _, err = weakspot("examine", own.file)
    assert code == 2 and "in forward: RuntimeError: " in err
    assert f"\nsamples have the shape {shape}, and channels come first: " in err
    assert f"write channels: {channels} under the split; in Python ArraySource(" in err
    if channels == "last":
        write(own, model="OfImages", data="{path: images.npz, channels: last}")
        assert weakspot("examine", own.file)[0] == 0


def test_a_module_with_a_slip_in_it(weakspot, own):
    (own.folder / f"{own.module}_slip.py").write_text("def net(:\n    pass\n")
    own.write(f"subject: {{model: '{own.module}_slip:net'}}\ndata: {{test: data.npz}}\nask: {{neuron_coverage: }}\n")
    code, _, err = weakspot("examine", own.file)
    assert code == 2
    assert f"{own.module}_slip.py:1: SyntaxError: " in err


def test_a_module_that_imports_what_is_not_there(weakspot, own):
    (own.folder / f"{own.module}_lacks.py").write_text("import no_such_package_at_all\n")
    own.write(f"subject: {{model: '{own.module}_lacks:net'}}\ndata: {{test: data.npz}}\nask: {{neuron_coverage: }}\n")
    code, _, err = weakspot("examine", own.file)
    assert code == 2
    assert f"{own.module}_lacks.py:1, in <module>: ModuleNotFoundError: No module named 'no_such_package_at_all'" in err


@pytest.mark.parametrize("how", ["option", "variable"])
def test_all_of_it_is_shown_on_request(weakspot, own, monkeypatch, how):
    write(own, model="fails_at_once")
    if how == "variable":
        monkeypatch.setenv("WEAKSPOT_TRACEBACK", "1")
    code, _, err = weakspot(*(["--traceback"] if how == "option" else []), "examine", own.file)
    assert code == 2
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("weakspot: your own code failed")


def test_a_defect_of_weakspot_shows_its_trace_back(own, monkeypatch, capsys):
    from weakspot.cli import main

    def defect(path):
        raise AssertionError("a defect")

    monkeypatch.setattr("weakspot.asking.config.read_config", defect)
    monkeypatch.setattr(sys, "argv", ["weakspot", "examine", str(own.file)])
    # called from a test, which is none of weakspot's files: what matters is that no frame below is the user's
    monkeypatch.setattr("weakspot.cli.error_attribution.is_user_code", lambda file: False)
    with pytest.raises(SystemExit) as ended:
        main.run()
    told = capsys.readouterr().err
    assert ended.value.code == 2, "1 is for a gate that fails"
    assert "AssertionError: a defect" in told
    assert told.splitlines()[-1].startswith("weakspot: this is a defect of weakspot: please report it")


def test_the_question_that_needs_scores_says_what_to_write(weakspot, own):
    np.savez(own.folder / "m.npz", x_test=np.zeros((4, 3), np.float32), y_test=np.zeros((4, 2), np.int64))
    own.write(
        f"subject: {{model: '{own.module}:net', task: multilabel}}\ndata: {{test: m.npz}}\nask: {{class_pairs: }}\n"
    )
    code, _, err = weakspot("examine", own.file)
    assert code == 2
    assert "give the subject scores='logits' or scores='probabilities'" in err.replace("\n", " ")


HARMFUL = [
    "<script>alert(1)</script>",
    "[red]cat[/red]",
    'say "cat"',
    "a\nb",
    "../../etc",
    "\x1b[31mred",
    "tab\there",
    "a/b",
]


def test_harmful_class_names_and_ids_are_printed_as_they_are(weakspot, own, capsys):
    module = own.folder / f"{own.module}_names.py"
    module.write_text(
        "import numpy as np, torch\nfrom torch import nn\nfrom weakspot.data.sources import ArraySource\n"
        f"HARMFUL = {HARMFUL!r}\n"
        "def net():\n    torch.manual_seed(0)\n    return nn.Sequential(nn.Flatten(), nn.Linear(16, 8))\n"
        "def test():\n    x = np.random.default_rng(0).random((8, 1, 4, 4), dtype=np.float32)\n"
        "    return ArraySource(x, np.arange(8), ids=HARMFUL)\n"
    )
    import json

    own.write(
        f"subject: {{model: '{module.stem}:net', classes: {json.dumps(HARMFUL)}, scores: logits}}\n"
        f"data: {{test: '{module.stem}:test'}}\nask: {{robustness: {{looks: 2}}}}\n"
    )
    code, _, err = weakspot("examine", own.file)
    assert code == 0, err
    assert not list(own.folder.parent.rglob("etc"))
    code, out, _ = weakspot("show", own.run, "robustness.neighbour_accuracy", "--rows", 20)
    assert code == 0
    assert "[red]cat[/red]" in out
    assert "\x1b" not in out
    assert r"a\nb" in out
    assert len([line for line in out.splitlines() if "True" in line or "False" in line]) == 8
    assert weakspot("report", own.run, "--quiet")[0] == 0


def test_markup_in_the_name_of_what_runs_is_not_interpreted(capsys):
    from weakspot.asking.progress import Bar

    bar = Bar()
    bar.begin("[red]test[/red]: 1 question", total=2)
    bar.advance(2)
    bar.end()
    assert "[red]test[/red]" in capsys.readouterr().err


def test_what_is_told_before_a_pass_begins_is_one_line(capsys):
    from weakspot.asking.progress import Bar

    Bar().tell("something [red]long[/red] " + "word " * 60)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("weakspot: something [red]long[/red] word")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢", "plain é 漢"),
        ("a\nb", r"a\nb"),
        ("\x1b[0m", r"\x1b[0m"),
        ("\u202eabc", r"\u202eabc"),
        ("\ud800", r"\ud800"),
    ],
)
def test_printable(text, shown):
    assert printable(text) == shown
    assert printable("a\nb", lines=True) == "a\nb"


def test_help_of_every_command_needs_nothing_heavy():
    script = (
        "import sys; sys.argv = ['weakspot', 'init', '--help']\n"
        "from weakspot.cli.main import run\n"
        "try:\n    run()\nexcept SystemExit as ended:\n    assert not ended.code\n"
        "heavy = {'torch', 'pyarrow', 'numpy', 'yaml', 'onnxruntime'} & set(sys.modules)\nassert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


def test_a_file_that_ends_too_early_is_no_ctrl_c(weakspot, monkeypatch, tmp_path):
    """To typer both are the same: it ends without a word and 130."""

    def ended(*arguments):
        raise EOFError("No data left in file")

    monkeypatch.setattr("weakspot.asking.config.read_config", ended)
    (tmp_path / "weakspot.yaml").write_text("{}")
    code, _, err = weakspot("examine", tmp_path / "weakspot.yaml")
    assert code == 2 and "EOFError: No data left in file" in err
