"""What somebody may hand over to do harm, or by mistake: refused in one line, in bounded time, with exit code 2."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.cli.damaging import OF_RUN, agree, make_all
from weakspot.core.errors import ConfigError, DataError, SubjectError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.run import Run
from weakspot.core.source import check_ids
from weakspot.core.subject import MOST_CLASSES, Subject
from weakspot.core.threads import pinned

pytestmark = pytest.mark.timeout(120)
SECRET = b"\x89PNG the secret of another folder"


FOLDERS = ("run/findings", "run/findings/robustness.neighbours")


@pytest.fixture
def received(tmp_path, monkeypatch):
    """A Run from somebody else, and a file beside it that is none of its business."""
    folder = make_all(tmp_path / "project")
    monkeypatch.chdir(folder)
    (tmp_path / "secret").write_bytes(SECRET)
    return folder


def refused(ended, *told):
    code, _, err = ended
    assert code == 2, ended
    assert "Traceback" not in err
    lines = [line for line in err.splitlines() if line.startswith("weakspot: ")]
    assert len(lines) == 1, err
    for words in told:
        assert words in lines[0], lines[0]
    return lines[0]


READING = [
    ("show", "run"), ("report", "run"), ("compare", "run", "other"), ("compare", "other", "run"),
    ("gate", "run", "policy.yaml"), ("gate", "other", "policy.yaml", "--baseline", "run"), ("evidence", "run"),
]  # fmt: skip


@pytest.mark.parametrize("command", READING, ids=" ".join)
@pytest.mark.parametrize(
    "path",
    ["run/run.json", "run/findings", OF_RUN, f"{OF_RUN}/finding.json", f"{OF_RUN}/picture-0000.png",
     f"{OF_RUN}/table.parquet", f"{OF_RUN}/curve_size.npy"],
)  # fmt: skip
def test_no_command_follows_a_link_out_of_a_run(weakspot, received, command, path):
    """What lies behind the link is as it should be, so that only the link is at fault."""
    shutil.move(received / path, received.parent / "elsewhere")
    (received / path).symlink_to(received.parent / "elsewhere")
    if command[0] == "gate" and command[1] == "other":
        (received / "policy.yaml").write_text(
            "rules: [{finding: robustness.neighbours, number: weak_share, worse_by_at_most: 0.5}]\n"
        )
    refused(weakspot(*command), "is no folder" if command[0] == "evidence" and path in FOLDERS else "is a link")
    assert not (received / "run" / "report.html").exists()


def test_a_foreign_file_never_comes_into_a_report(weakspot, received):
    picture = received / OF_RUN / "picture-0000.png"
    picture.unlink()
    picture.symlink_to(received.parent / "secret")
    refused(weakspot("report", "run"), "picture-0000.png", "it is a link, which could lead anywhere")
    assert not list(received.rglob("report.html"))


def test_nothing_outside_a_run_is_written_to(weakspot, received):
    outside = received.parent / "secret"
    (received / "labelled" / ".lock").symlink_to(outside)
    refused(weakspot("causes", "label", "labelled", "--import", "labels.csv"), ".lock: it is a link")
    assert outside.read_bytes() == SECRET
    (received / "labelled" / ".lock").unlink()
    shutil.move(received / "labelled" / "findings", received.parent / "findings")
    (received / "labelled" / "findings").symlink_to(received.parent / "findings")
    before = sorted(received.parent.joinpath("findings").rglob("*"))
    refused(weakspot("causes", "label", "labelled", "--import", "labels.csv"), "leads out of the Run")
    assert sorted(received.parent.joinpath("findings").rglob("*")) == before


@pytest.mark.parametrize("provenance", [[], ["a"], "text", None, {"parameters": [1]}, {"versions": 3}, {"subject": []}])
def test_a_provenance_of_another_kind(weakspot, received, provenance):
    path = received / OF_RUN / "finding.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "provenance": provenance}))
    for command in READING[:3]:
        refused(weakspot(*command), "provenance", "examine again")


@pytest.mark.parametrize("name", ["../../../../outside", "/etc/passwd", "..", 7, ["a"], None])
@pytest.mark.parametrize("command", READING[:3], ids=" ".join)
def test_no_entry_of_an_index_leads_to_an_array_elsewhere(weakspot, received, name, command):
    """In a Finding of an older version an array may lie under another name."""
    np.save(received.parent / "outside.npy", np.arange(1, 6))
    path = received / OF_RUN / "finding.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "array_files": {"curve_size": name}}))
    refused(weakspot(*command))


@pytest.mark.parametrize("entry", ["array_files", "renamed_columns", "outputs"])
@pytest.mark.parametrize("value", [3, [1], "text"])
def test_a_part_that_may_lack_is_no_other_kind(weakspot, received, entry, value):
    path = received / OF_RUN / "finding.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), entry: value}))
    for command in READING[:3]:
        refused(weakspot(*command), f"{entry!r} is no mapping")


@pytest.mark.parametrize("entry", ["summary", "arrays", "provenance", "name"])
@pytest.mark.parametrize("value", [3, [[1, 2, 3]]])
def test_a_damaged_finding_of_an_older_version(weakspot, received, entry, value):
    path = received / OF_RUN / "finding.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 1, entry: value}))
    refused(weakspot("show", "run"))


def test_a_picture_of_too_many_pixels_is_not_handed_on(weakspot, received):
    path = received / OF_RUN / "picture-0000.png"
    content = bytearray(path.read_bytes())
    content[16:24] = (60_000).to_bytes(4, "big") * 2
    path.write_bytes(bytes(content))
    agree(received)
    refused(weakspot("report", "run"), "has 60,000 × 60,000 pixels")


def test_text_that_is_none_does_not_stop_a_report(weakspot, received):
    """An array may hold half of a surrogate pair, though no JSON may."""
    run = Run.open("run")
    finding = run["causes.root_causes"]
    names = np.array(["\ud800", "b", "c"])
    run.save(replace(finding, arrays={**finding.arrays, "image_id": names}))
    assert weakspot("report", "run")[0] == 0
    assert weakspot("show", "run", finding.name)[0] == 0


YAML = """
subject: {{model: '{module}:{model}', scores: logits{more}}}
data: {{test: {data}}}
ask: {{neuron_coverage: }}
"""
OWN = """
import sys
import numpy as np
from torch import nn
import torch
from weakspot.data.sources import ArraySource

class Ends(nn.Module):
    def __init__(self, code=0):
        super().__init__()
        self.fc, self.code = nn.Linear(3, 2), code

    def forward(self, inputs):
        sys.exit(self.code)

class Gives(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.fc, self.kind = nn.Linear(3, 2), kind

    def forward(self, inputs):
        return self.fc(inputs).to(getattr(torch, self.kind))

def ends_at_once():
    sys.exit(0)

def prepares(inputs):
    raise SystemExit

class Data:
    ids = ["a", "b"]

    def read(self, positions):
        sys.exit(0)

    def fingerprint(self):
        return "data"

def odd_ids():
    made = ArraySource(np.zeros((2, 3)), np.arange(2))
    made.ids = ["a", chr(0xD800)]
    return made
"""


@pytest.fixture
def own(project):
    with (project.folder / f"{project.module}.py").open("a") as module:
        module.write(OWN)

    def write(model="net", more="", data="data.npz"):
        text = YAML.format(module=project.module, model=model, more=more, data=data)
        project.write(text.replace("OWN", project.module))
        return project

    return write


@pytest.mark.parametrize(
    "given",
    [
        {"model": "Ends"}, {"model": "Ends", "more": ", arguments: {code: 1}"}, {"model": "ends_at_once"},
        {"more": ", preprocess: 'OWN:prepares'"}, {"data": "'OWN:ends_at_once'"}, {"data": "'OWN:Data'"},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("command", ["examine", "plan"])
def test_a_model_that_ends_the_program_examines_nothing(weakspot, own, given, command):
    made = own(**given)
    refused(weakspot(command, made.file), "sys.exit(")
    assert not made.run.exists()


def test_a_module_that_ends_the_program_when_it_is_imported(weakspot, own):
    made = own()
    name = f"{made.module}_ends"
    (made.folder / f"{name}.py").write_text("import sys\nsys.exit(0)\n")
    made.write(YAML.format(module=name, model="net", more="", data="data.npz"))
    refused(weakspot("examine", made.file), f"{name}.py:2", "sys.exit(0)")


@pytest.mark.parametrize("kind", ["bool", "complex64"])
def test_answers_that_are_no_real_numbers(weakspot, own, kind):
    made = own("Gives", more=f", arguments: {{kind: {kind}}}")
    refused(weakspot("examine", made.file), f"the model gave torch.{kind}, expected real numbers")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (", classes: 1000000000", "classes is 1,000,000,000: expected 1,000,000 at most"),
        (', classes: ["a", "\\ud800"]', "holds half of a surrogate pair"),
    ],
)
def test_classes_that_cannot_be(weakspot, own, more, told):
    made = own(more=more)
    refused(weakspot("examine", made.file), told)
    with pytest.raises(ConfigError, match="at most"):
        Subject(lambda inputs: inputs, classes=MOST_CLASSES + 1)
    with pytest.raises(ConfigError, match="surrogate"):
        Subject(lambda inputs: inputs, classes=["a", "\udfff"])


def test_ids_that_are_no_text(weakspot, own):
    made = own(data="'OWN:odd_ids'")
    refused(weakspot("examine", made.file), "is not text that can be written to a file")
    with pytest.raises(DataError, match="is not text"):
        check_ids(type("S", (), {"ids": ["\udc80"], "read": None, "fingerprint": None})())


@pytest.mark.parametrize("value", ["100000", "1025"])
@pytest.mark.parametrize("option", ["--threads", "--workers"])
def test_more_threads_than_any_machine_has(weakspot, own, option, value):
    refused(weakspot("examine", own().file, option, value), f"{option[2:]} is {value}: expected 1024 at most")


def test_threads_that_a_run_from_elsewhere_notes(tmp_path):
    (tmp_path / "execution.json").write_text('{"threads": 100000}')
    with pytest.raises(ConfigError, match="threads is 100000: expected 1024 at most"):
        pinned(ExecutionOptions(), tmp_path, 1)


@pytest.mark.parametrize("text", ["a: [" + "0, " * 4_000_000 + "]", "a: 1" + ":1" * 300_000, "- " * 400_000])
def test_long_yaml_takes_no_time(weakspot, own, text):
    made = own()
    made.write(text)
    refused(weakspot("examine", made.file))


def test_a_long_setting_takes_no_time(weakspot, own):
    refused(weakspot("robustness", own().file, "--set", f"looks=[{'0, ' * 110_000}]"), "more than 100,000 values")


@pytest.mark.parametrize("delimiter", ["''", "',,'", '"\\n"'])
def test_a_delimiter_that_is_none(weakspot, own, delimiter):
    made = own(data=f"{{path: list.csv, delimiter: {delimiter}}}")
    (made.folder / "list.csv").write_text("path,target\na.png,0\n")
    refused(weakspot("examine", made.file), "delimiter is", "expected one character")


def test_a_library_that_cannot_be_imported(weakspot, own, monkeypatch):
    """Neither weakspot's fault nor that of the user's own module."""
    made = own()
    installed = made.folder / "site-packages"
    (installed / "brokenlib").mkdir(parents=True)
    (installed / "brokenlib" / "__init__.py").write_text("raise RuntimeError('operator nms does not exist')\n")
    (installed / "halflib.py").write_text("import no_such_library_at_all\n")
    monkeypatch.syspath_prepend(installed)
    monkeypatch.chdir(made.folder)
    for name, told in (
        ("brokenlib", "RuntimeError: operator nms does not exist"),
        ("halflib", "no_such_library_at_all"),
    ):
        asked = ("init", "--model", f"{name}:net", "--test", "data.npz", "--output", "new.yaml")
        refused(weakspot(*asked), "a library cannot be loaded", told)
        assert not (made.folder / "new.yaml").exists()
        made.write(YAML.format(module=name, model="net", more="", data="data.npz"))
        refused(weakspot("examine", made.file), "a library cannot be loaded", told)


def test_a_system_that_refuses_is_told_in_a_line(weakspot, own, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", "/somewhere")

    monkeypatch.setattr("weakspot.cli.session.examine", refuse)
    monkeypatch.setattr(
        "weakspot.cli.error_attribution.is_user_code", lambda file: False
    )  # the test itself is none of weakspot's files
    refused(weakspot("examine", own().file), "cannot use /somewhere: Permission denied")


CALL = "import sys; from weakspot.cli.main import run; run()"


def test_a_reader_who_has_seen_enough_is_no_gate_that_fails(received):
    """`weakspot show run | head -1` must not end with 1, nor with a trace-back."""
    command = [sys.executable, "-c", CALL, "show", "run", "robustness.neighbours", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        told = process.stderr.read()
        assert (process.wait(), told) == (141, b"")


def test_names_that_the_terminal_cannot_show_are_printed_all_the_same(received):
    environment, name = {**os.environ, "PYTHONIOENCODING": "latin-1"}, os.fsdecode(b"r\xff \xe6\xbc\xa2")
    shutil.move("run", name)
    command = [sys.executable, "-c", CALL, "report", name]
    told = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert told.stdout == b"report: r\\udcff \\u6f22/report.html\n"


def test_a_model_in_a_library_use_that_ends_the_program():
    class Ends(torch.nn.Module):
        def forward(self, inputs):
            sys.exit(0)

    with pytest.raises(SubjectError, match=r"the model ended the program with sys.exit\(0\)"):
        Subject(Ends()).layers(torch.zeros(1, 3))


@pytest.mark.parametrize(
    "entry", ["subject", "data", "findings", "asked", "subject.classes", "data.test", "findings.x"]
)
@pytest.mark.parametrize("value", [3, [1], {"a": [1]}, "text"])
def test_a_manifest_with_something_else_in_it(weakspot, received, entry, value):
    path = received / "run" / "run.json"
    manifest = json.loads(path.read_text())
    key, _, inner = entry.partition(".")
    manifest[key] = {**manifest[key], inner: value} if inner else value
    path.write_text(json.dumps(manifest))
    harmless = (entry, value) in [("subject", {"a": [1]}), ("data.test", {"a": [1]}), ("findings.x", "text")]
    for command in READING[:3]:
        ended = weakspot(*command)
        if harmless:
            assert ended[0] in (0, 2)
            assert "Traceback" not in ended[2]
        else:
            refused(ended)
