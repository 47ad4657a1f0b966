"""A corpus of bad configurations and options: always code 2, one short message, no trace-back, nothing half-written."""

import os
import random
import re
import shutil

import pytest
import torch

from tests.cli.corpus import CASES, OPTIONS_WRONG, SET_WRONG


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files that are broken, empty, or would run code."""
    return bad_files(tmp_path_factory.mktemp("files"))


class Evil:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def bad_files(folder):
    """Files that are broken, empty, or would make a folder `executed`."""
    for name in ("broken.pt2", "broken.onnx", "broken.npz", "broken.npy", "broken.zip", "broken-ubyte"):
        (folder / name).write_bytes(b"\x01nothing")
    (folder / "broken.csv").write_bytes(b"a,b\n1\n\xff,2,3\n")
    (folder / "few.csv").write_text("id,path\n1,x.png\n")
    (folder / "empty.txt").write_text("\n\n")
    (folder / "twice.txt").write_text("cat\ndog\ncat\n")
    (folder / "empty.pt").write_bytes(b"")
    (folder / "empty_folder").mkdir()
    torch.save({"state_dict": Evil(folder / "executed")}, folder / "evil.pt")
    torch.save({"0.weight": torch.zeros(2, 2)}, folder / "other.pt")
    return folder


MORE = """
NUMBER = 3

def gives_text():
    return "text"

def fails_at_once():
    raise ValueError("no data today")

def fails(inputs):
    raise ValueError("not prepared")
"""


@pytest.fixture
def bad(project, files):
    """The project with the broken files beside it."""
    return with_bad_files(project, files)


def with_bad_files(project, files):
    """The project with the broken files beside it, and functions that fail in its module."""
    for path in files.iterdir():
        (project.folder / path.name).symlink_to(path)
    with (project.folder / f"{project.module}.py").open("a") as module:
        module.write(MORE)
    return project


def troubles(ended, project, case):
    """What is not as it should be when something bad is given."""
    code, out, err = ended
    wrong = {
        "does not end with 2": code != 2,
        "prints to standard output": out != "",
        "has no message": not err.startswith("weakspot: "),
        "shows a trace-back": "Traceback" in err,
        "says too much": len(err) > 1500 or len(err.splitlines()) > 6,
        "leaves a Run": (project.folder / "runs").exists(),
        "leaves half a file": any(project.folder.rglob("*.partial")),
    }
    shutil.rmtree(project.folder / "runs", ignore_errors=True)
    return [f"{case} {trouble}: {code} {out[:200]} {err[-600:]}" for trouble, there in wrong.items() if there]


@pytest.mark.parametrize("part", range(10))
def test_bad_configurations(weakspot, bad, files, part):
    found = []
    for case, text in CASES[part::10]:
        bad.write(text.replace("MODULE", bad.module))
        found += troubles(weakspot("examine", bad.file), bad, case)
    assert not found, "\n".join(found)
    assert not (files / "executed").exists()


def test_bad_settings_name_the_setting(weakspot, bad):
    bad.write(ask="robustness: {looks: 3}")
    found = []
    for setting in SET_WRONG:
        ended = weakspot("robustness", bad.file, "--set", setting)
        found += troubles(ended, bad, setting)
        assert "--set" in ended[2], ended[2]
    assert not found, "\n".join(found)


def test_bad_options(weakspot, bad):
    bad.write(ask="neuron_coverage: ")
    found = [
        line for options in OPTIONS_WRONG for line in troubles(weakspot("examine", bad.file, *options), bad, options)
    ]
    assert not found, "\n".join(found)


def mutant(text, generator):
    """The text with a few characters put in, taken out or doubled."""
    characters = list(text)
    for _ in range(generator.randint(1, 3)):
        place = generator.randrange(len(characters))
        kind = generator.randrange(3)
        if kind == 0:
            characters.insert(place, generator.choice("[]{}:,&*!|>'\"%@`#?- \n\t0a\x00é"))
        elif kind == 1:
            del characters[place : place + generator.randint(1, 4)]
        else:
            characters.insert(place, characters[place])
    return "".join(characters)


def test_mutants_end_well_or_with_a_message(weakspot, bad):
    """A slip of the keyboard: the file is still good, or it is said what is wrong with it."""
    generator = random.Random(0)
    text = (
        f"subject:\n  model: '{bad.module}:net'\n  scores: logits\n  bounds: [0, 1]\ndata:\n  test: data.npz\nask:\n"
        "  coverage: {criteria: [nc], nc: {threshold: 0.5}}\n"
    )
    ends = set()
    for _ in range(150):
        bad.write(mutant(text, generator))
        code, _, err = weakspot("layers", bad.file)
        ends.add(code)
        assert code in (0, 2), bad.file.read_text()
        assert code == 0 or err.startswith("weakspot: "), err
        assert "Traceback" not in err
    assert ends == {0, 2}


def test_the_corpus_is_large():
    assert len(CASES) + len(SET_WRONG) + len(OPTIONS_WRONG) + 150 > 700
    assert len({case for case, _ in CASES}) == len(CASES)


START = "subject: {model: 'MODULE:net'}\ndata: {test: data.npz}\n"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("subject:\n  model: 'MODULE:net'\n  tsak: x\n", 3, "subject.tsak is not known: did you mean 'task'?"),
        ("subject:\n  model: 'MODULE:net'\n  classes:\n    - a\n    - 1\n", 3, "subject.classes is"),
        ("subject: {model: 'MODULE:net'}\ndata:\n  test:\n    path: data.npz\n    size: 3\n", 5, "data.test.size is 3"),
        (
            "subject: {model: 'MODULE:net'}\ndata: {test: data.npz}\nask:\n  coverage:\n    criteria: [nc]\n    nc:\n"
            "      threshold: high\n", 7, "threshold is 'high', expected a number",
        ),
        (
            "subject: {model: 'MODULE:net'}\ndata: {test: data.npz}\nask:\n  neuron_coverage:\n    layers: all\n"
            "    treshold: 1\n", 6, "no option 'treshold'; did you mean 'threshold'?",
        ),
        (f"{START}ask:\n  coverrage: {{}}\n", 4, "did you mean 'coverage'?"),
        (f"{START}ask:\n  robustness: {{looks: 0}}\n", 4, "looks ≥ 1"),
        ("subject:\n  model: 'MODULE:net'\n  weights: none.pt\ndata: {test: data.npz}\nask: {errors: }", 3, "no such"),
        ("subject:\n  model: 'MODULE:net'\ndata:\n  train: data.npz\n  test: none\nask: {errors: }", 5, "not a folder"),
        ("subject:\n  model: 'a:b'\n  model: 'c:d'\n", 3, "'model' stands here twice, first on line 2"),
        ("subject:\n  model: 'MODULE:net'\n  task: detection\ndata:\n  test: 3\n", 3, "subject.task is 'detection'"),
    ],
)  # fmt: skip
def test_the_line_is_named(weakspot, bad, text, place, message):
    bad.write(text.replace("MODULE", bad.module) + ("" if "data" in text else "data: {test: data.npz}\n"))
    _, _, err = weakspot("examine", bad.file)
    assert re.search(rf"weakspot.yaml:{place}: .*{re.escape(message)}", err), err


def test_all_that_is_wrong_is_said_at_once(weakspot, bad):
    bad.write("subject:\n  model: 3\n  task: x\ndata:\n  test: 3\n")
    _, _, err = weakspot("examine", bad.file)
    assert [re.search(r"yaml:(\d+):", line)[1] for line in err.splitlines()] == ["2", "3", "5"]
