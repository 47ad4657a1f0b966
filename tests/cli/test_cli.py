"""The command line, called as a user calls it: what it prints, what it writes, how it ends."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn

from weakspot.cli.printing import print_finding
from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.core.run import Run

COMMAND = [sys.executable, "-c", "from weakspot.cli.main import run; run()"]


def test_help_is_quick_and_loads_nothing_heavy():
    script = (
        "import sys; sys.argv = ['weakspot', '--help']\n"
        "from weakspot.cli.main import run\n"
        "try:\n    run()\nexcept SystemExit as ended:\n    assert not ended.code\n"
        "heavy = {'torch', 'pyarrow', 'numpy', 'scipy', 'sklearn', 'yaml', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    spent = []
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        text = child.stdout.read()
        child.stdout.close()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0
        spent.append(used.ru_utime + used.ru_stime)  # of the processor: other work on the machine does not count
    assert all(command in text for command in ("demo", "examine", "plan", "layers", "show", "report"))
    assert min(spent) < 0.5


@pytest.mark.parametrize("command", ["demo", "examine", "plan", "layers", "show", "report", "version", "laws"])
def test_every_command_has_help(weakspot, command):
    code, out, _ = weakspot(command, "--help")
    assert code == 0
    assert f"weakspot {command}" in out
    assert len(out.splitlines()) > 5


@pytest.mark.parametrize("group", ["causes", "lesions", "evidence"])
def test_a_group_of_commands_alone_says_what_there_is(weakspot, group):
    code, out, err = weakspot(group)
    assert (code, err) == (0, "")
    assert out.startswith("Usage: ") and f"weakspot {group} [OPTIONS] COMMAND" in out


def test_the_version(weakspot):
    from weakspot import __version__

    assert weakspot("version") == (0, f"{__version__}\n", "")


def test_examine_prints_findings_and_says_where_they_are(weakspot, project):
    code, out, err = weakspot("examine", project.file)
    assert code == 0
    assert "coverage.neuron_coverage: Share of the neurons" in out
    assert out.endswith(f"run: {project.run}\n")
    assert "30/30" in err
    assert "40/40" in err
    run = Run.open(project.run)
    assert set(run.names()) == {
        "coverage.neuron_coverage", "coverage.activation_ranges", "coverage.k_multisection",
        "coverage.neuron_importance", "coverage.layer_traces", "coverage.importance_driven_coverage",
        "data.pictures-train", "performance.performance",
    }  # fmt: skip
    assert run["coverage.neuron_coverage"].summary["inputs"].value == 30


def test_examine_again_uses_what_is_there(weakspot, project):
    weakspot("examine", project.file, "--quiet")
    before = {path: path.read_bytes() for path in project.run.rglob("*") if path.is_file()}
    code, out, err = weakspot("examine", project.file)
    assert code == 0
    assert "coverage" in out
    assert "/s" not in err
    assert {path: path.read_bytes() for path in project.run.rglob("*") if path.is_file()} == before


def test_quiet_prints_nothing(weakspot, project):
    assert weakspot("examine", project.file, "--quiet") == (0, "", "")
    assert weakspot("report", project.run, "--quiet") == (0, "", "")


def test_json_is_json_and_nothing_else(weakspot, project):
    code, out, err = weakspot("examine", project.file, "--json")
    assert (code, err) == (0, "")
    entries = {entry["name"]: entry for entry in json.loads(out)}
    assert entries["coverage.neuron_coverage"]["summary"]["inputs"] == {"value": 30, "about": "samples examined"}
    assert entries["coverage.importance_driven_coverage"]["rows"] == 30
    assert "coverage.layer_traces" not in entries, "what others are only built from is not printed"
    shown = {entry["name"]: entry for entry in json.loads(weakspot("show", project.run, "--json")[1])}
    assert shown.keys() > entries.keys()
    assert shown["coverage.layer_traces"]["rows"] == 40
    (one,) = json.loads(weakspot("show", project.run, "coverage.neuron_coverage", "--json")[1])
    rows = one.pop("table")
    assert one == entries["coverage.neuron_coverage"] and len(rows) == one["rows"]


def inputs_examined(run):
    return {finding.name: finding.summary["inputs"].value for finding in Run.open(run)}


def test_limit_draws_so_many_of_each_split(weakspot, project):
    weakspot("examine", project.file, "--limit", "7", "--quiet")
    assert set(inputs_examined(project.run).values()) == {7}
    weakspot("examine", project.file, "--quiet")
    examined = inputs_examined(project.run)
    assert (examined["coverage.neuron_coverage"], examined["coverage.activation_ranges"]) == (30, 40)


def test_a_question_alone_with_the_options_of_the_file_and_of_the_command(weakspot, project):
    project.write(ask="coverage: {criteria: [nc], nc: {threshold: 0.5}}, robustness: {}")
    code, out, err = weakspot("coverage", project.file, "--json")
    assert (code, err) == (0, "")
    assert [entry["name"] for entry in json.loads(out)] == ["coverage.neuron_coverage", "performance.performance"]
    assert Run.open(project.run)["coverage.neuron_coverage"].provenance["parameters"]["threshold"] == 0.5
    code, out, _ = weakspot("coverage", project.file, "--set", "nc={threshold: 0.25}", "--json")
    assert code == 0
    assert Run.open(project.run)["coverage.neuron_coverage"].provenance["parameters"]["threshold"] == 0.25
    code, _, err = weakspot("coverage", project.file, "--set", "nonsense")
    assert code == 2
    assert "--set 'nonsense' sets nothing: expected name=value" in err


def test_a_probe_from_a_file_beside_the_configuration(weakspot, project):
    project.write(ask="")
    code, out, _ = weakspot("examine", project.file, "--probe", f"{project.module}:Mine", "--json")
    assert code == 0
    mine, besides = json.loads(out)
    assert mine == {"name": "mine", "about": "Counts inputs.", "summary": {"counted": {"value": 30}}, "rows": 0}
    assert besides["name"] == "performance.performance"


def test_a_probe_of_ones_own_may_be_asked_in_the_file_with_options(weakspot, project):
    project.write(ask=f"'{project.module}:Mine': {{times: 3}}, neuron_coverage: {{threshold: 0.5}}")
    _, out, _ = weakspot("examine", project.file, "--json")
    entries = {entry["name"]: entry["summary"] for entry in json.loads(out)}
    assert entries["mine"]["counted"]["value"] == 90
    assert Run.open(project.run)["coverage.neuron_coverage"].provenance["parameters"]["threshold"] == 0.5


def test_layers_given_as_a_list(weakspot, project):
    project.write(ask="coverage: {criteria: [nc, idc], nc: {layers: ['0', '2']}, idc: {layers: ['0']}}")
    code, _, err = weakspot("examine", project.file, "--json")
    assert (code, err) == (0, "")
    assert Run.open(project.run)["coverage.neuron_coverage"].table["layer"].to_pylist() == ["0 (activated)", "2"]


def test_other_places_for_the_run(weakspot, project, tmp_path):
    weakspot("examine", project.file, "--run", tmp_path / "there", "--quiet")
    assert Run.open(tmp_path / "there").names()
    assert not project.run.exists()


def test_execution_options_reach_the_run(weakspot, project):
    weakspot(
        "examine", project.file, "--batch-size", 5, "--shard-size", 10, "--workers", 0, "--device", "cpu", "--quiet"
    )
    finding = Run.open(project.run)["coverage.neuron_coverage"]
    assert finding.provenance["execution"] == {"batch_size": 5, "shard_size": 10, "device": "cpu", "threads": 1}


def test_preprocessing_arguments_weights_and_classes(weakspot, project):
    net = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    save_file(net.state_dict(), project.folder / "net.safetensors")
    (project.folder / "classes.txt").write_text("cat\ndog\n")
    project.write(
        subject=f", arguments: {{hidden: 5}}, weights: net.safetensors, classes: classes.txt, bounds: [-9, 9], "
        f"preprocess: '{project.module}:scaled'",
        ask="coverage: {criteria: [nc]}",
    )
    assert weakspot("examine", project.file, "--quiet")[0] == 0
    noted = Run.open(project.run).manifest()["subject"]
    assert (noted["model"], noted["classes"]) == ("Sequential", ["cat", "dog"])


def test_image_folders(weakspot, project):
    for split in ("train", "test"):
        for label, value in (("cat", 0), ("dog", 255)):
            (project.folder / split / label).mkdir(parents=True)
            for number in range(3):
                picture = np.full((1, 1, 3), value + number * (1 if value == 0 else -1), dtype=np.uint8)
                Image.fromarray(picture).save(project.folder / split / label / f"{number}.png")
    (project.folder / f"{project.module}.py").write_text(
        "from torch import nn\ndef net():\n    return nn.Sequential(nn.Flatten(), nn.Linear(3, 2))\n"
    )
    project.write(
        subject=", classes: [dog, cat]",
        data="train: train, test: {path: test, mode: RGB, size: [1, 1]}",
        ask="coverage: {criteria: [nc, kmnc]}",
    )
    code, _, err = weakspot("examine", project.file, "--quiet")
    assert (code, err) == (0, "")
    assert Run.open(project.run).manifest()["data"]["test"]["samples"] == 6


@pytest.mark.parametrize(
    ("test", "message"),
    [
        (("ape", "dog"), "train has the classes ['cat', 'dog'] and test ['ape', 'dog'], so one number would mean two"),
        ((), "the data number the classes ['cat', 'dog', 'owl'], and the model has 2 scores per sample"),
    ],
)
def test_folders_that_number_their_classes_otherwise_are_refused(weakspot, project, test, message):
    splits = {"train": ("cat", "dog"), "test": test} if test else {"test": ("cat", "dog", "owl")}
    for split, label in ((split, label) for split, labels in splits.items() for label in labels):
        (project.folder / split / label).mkdir(parents=True)
        Image.new("RGB", (1, 1)).save(project.folder / split / label / "0.png")
    (project.folder / f"{project.module}.py").write_text(
        "from torch import nn\ndef net():\n    return nn.Sequential(nn.Flatten(), nn.Linear(3, 2))\n"
    )
    project.write(
        data=", ".join(f"{split}: {split}" for split in splits), ask="coverage: {criteria: [nc], baseline: false}"
    )
    code, _, err = weakspot("examine", project.file, "--quiet", "--limit", 2)
    assert code == 2
    assert message in err and "in the order of the outputs" in err


def test_plan_says_what_it_costs_and_writes_nothing(weakspot, project):
    code, out, _ = weakspot("plan", project.file)
    assert code == 0
    assert "pass 1 over train: 40 samples × 1 forward passes, about" in out
    assert "pass 2 over test: 30 samples × 1 forward passes" in out
    assert re.search(r"\nin all about \d+ s, disk \d+\.\d MB, memory \d", out)
    assert not project.run.exists()
    weakspot("examine", project.file, "--quiet")
    _, out, _ = weakspot("plan", project.file, "--json")
    first, second = json.loads(out)
    assert (first["split"], second["split"]) == ("train", "test")
    assert sorted(first["questions"]) == sorted(first["reused"])
    assert second["forward_passes_per_sample"] == 0
    _, out, _ = weakspot("plan", project.file, "--limit", "5", "--probe", f"{project.module}:Mine")
    assert "5 samples" in out
    assert "  mine\n" in out


def test_layers_are_listed(weakspot, project):
    code, out, _ = weakspot("layers", project.file)
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        ["layer", "kind", "output", "activation", "in", "all"],
        ["0", "Linear", "8", "relu", "yes"],
        ["1", "ReLU", "8"],
        ["2", "Linear", "2", "yes"],
    ]
    entries = json.loads(weakspot("layers", project.file, "--json")[1])
    assert [(entry["label"], entry["shape"], entry["weighted"]) for entry in entries] == [
        ("0", [8], True), ("1", [8], False), ("2", [2], True),
    ]  # fmt: skip


def test_show_prints_a_summary_and_rows(weakspot, project):
    weakspot("examine", project.file, "--quiet")
    code, out, _ = weakspot("show", project.run)
    assert code == 0
    assert (out.count("\ncoverage."), out.count("\ndata.")) == (6, 1)
    assert "samples examined" in out
    _, out, _ = weakspot("show", project.run, "coverage.neuron_importance", "--rows", "2")
    lines = out.strip().splitlines()
    assert lines[-3].split() == ["layer", "channel", "relevance"]
    assert len(lines[-2:]) == 2


def test_long_values_leave_the_columns_straight(capsys):
    numbers = {
        "short": Estimate(1, about="of these"),
        "long": Estimate(-0.17621, -0.28461, -0.063371, 0.95, "of those"),
    }
    print_finding(Finding("room.one", "About.", summary=numbers), rows=0)
    short, long = capsys.readouterr().out.splitlines()[-2:]
    assert short.index("of these") == long.index("of those")


def test_rows_are_printed_to_six_digits(capsys):
    table = table_of({"id": ["a"], "share": np.array([2 / 3]), "count": np.array([1234567])})
    print_finding(Finding("room.one", "About.", table=table), rows=1)
    assert capsys.readouterr().out.splitlines()[-1].split() == ["a", "0.666667", "1234567"]


def test_report_writes_one_file(weakspot, project, tmp_path):
    weakspot("examine", project.file, "--quiet")
    code, out, _ = weakspot("report", project.run)
    assert (code, out) == (0, f"report: {project.run / 'report.html'}\n")
    assert "<html" in (project.run / "report.html").read_text()
    weakspot("report", project.run, "--output", tmp_path / "deep" / "x.html")
    assert (tmp_path / "deep" / "x.html").read_bytes() == (project.run / "report.html").read_bytes()


def test_show_and_report_do_not_load_torch(weakspot, project):
    weakspot("examine", project.file, "--quiet")
    for command in ("show", "report"):
        script = (
            f"import sys; sys.argv = ['weakspot', {command!r}, {str(project.run)!r}]\n"
            "from weakspot.cli.main import run\n"
            "try:\n    run()\nexcept SystemExit as ended:\n    assert not ended.code\n"
            "assert 'torch' not in sys.modules"
        )
        subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


def test_the_demo(weakspot, tmp_path):
    code, out, err = weakspot("demo", "--run", tmp_path / "demo")
    assert code == 0
    answers, last = out.splitlines()[:-2], out.splitlines()[-2:]
    assert len(answers) == 5 and answers[0].startswith("How good is the model? 60.8 % (95 % interval 56.9 % to 64.7 %)")
    assert answers[2].startswith("Which inputs are predicted correctly only by luck? 54 % (95 %")
    assert last == [f"all numbers: weakspot show {tmp_path / 'demo'}", f"report: {tmp_path / 'demo' / 'report.html'}"]
    assert "600/600" in err
    run = Run.open(tmp_path / "demo")
    assert 0.5 < run["robustness.neighbour_accuracy"].summary["accuracy"].value < 0.7
    kinds = [name.partition("-")[0] for name in run["causes.unsafe"].table["id"].to_pylist()]
    assert kinds.count("usual") < len(kinds) / 4  # half of the eyes it chooses from
    assert (tmp_path / "demo" / "report.html").stat().st_size < 8_000_000
    assert weakspot("demo", "--run", tmp_path / "demo", "--quiet") == (0, "", "")


SUBJECT = "subject: {model: 'MODULE:net', scores: logits}\n"
DATA = "data: {train: data.npz, test: data.npz}\n"
WRONG = {
    "no mapping": ("just text", "must hold the keys subject, data and ask; it holds str"),
    "empty": ("", "weakspot.yaml is empty: expected the keys subject, data and ask"),
    "no YAML": ("subject: [", ":1: this is not valid YAML: "),
    "no subject": ("data: {}", "weakspot.yaml:1: subject is missing"),
    "unknown key": (SUBJECT + DATA + "aks: {}", ":3: aks is not known: did you mean 'ask'"),
    "unknown task": (
        "subject: {model: 'a:b', task: detection}\n" + DATA,
        ":1: subject.task is 'detection': expected 'classification', .* or 'segmentation'",
    ),
    "no such module": ("subject: {model: 'nowhere_at_all:net'}\n" + DATA, "cannot import 'nowhere_at_all'"),
    "no such name": ("subject: {model: 'MODULE:met'}\n" + DATA, "'MODULE' has no 'met'"),
    "no reference": (
        "subject: {model: resnet}\n" + DATA,
        "'resnet' is no model: expected package.module:name, or a file .pt2 or .onnx",
    ),
    "wrong arguments": (
        "subject: {model: 'MODULE:net', arguments: {depth: 3}}\n" + DATA,
        "MODULE:net cannot be called with {'depth': 3}",
    ),
    "no weights": (
        "subject: {model: 'MODULE:net', weights: none.safetensors}\n" + DATA,
        ":1: cannot read weights .*none.safetensors: there is no such file",
    ),
    "weights of something else": (
        "subject: {model: 'MODULE:net', weights: data.npz}\n" + DATA,
        "cannot read weights .*data.npz",
    ),
    "no class file": (
        "subject: {model: 'MODULE:net', classes: none.txt}\n" + DATA,
        "cannot read the class names from .*none.txt: No such file",
    ),
    "no data": (SUBJECT + "data: {test: nowhere}\nask: {neuron_coverage: }", ":2: .*nowhere is not a folder"),
    "no npz": (SUBJECT + "data: {test: none.npz}\nask: {neuron_coverage: }", "cannot read .*none.npz"),
    "no array": (
        SUBJECT + "data: {test: {path: data.npz, inputs: images}}\nask: {neuron_coverage: }",
        "has no array 'images': it has x_train, x_test, y_train, y_test",
    ),
    "no target array": (
        SUBJECT + "data: {test: {path: data.npz, targets: labels}}\nask: {neuron_coverage: }",
        "has no array 'labels': it has",
    ),
    "no split": (SUBJECT + "data: {test: data.npz}\nask: {coverage: {}}", "needs the split 'train'.*only 'test'"),
    "unknown question": (
        SUBJECT + DATA + "ask: {coverrage: {}}",
        "nothing is called 'coverrage': did you mean 'coverage'",
    ),
    "unknown option": (
        SUBJECT + DATA + "ask: {neuron_coverage: {treshold: 1}}",
        ":3: coverage.neuron_coverage has no option 'treshold'; did you mean 'threshold'.*it has: layers, .*threshold",
    ),
    "unknown criterion": (SUBJECT + DATA + "ask: {coverage: {criteria: [nx]}}", "knows no criterion or option 'nx'"),
    "unknown layer": (
        SUBJECT + DATA + "ask: {neuron_coverage: {layers: conv}}",
        "no layer is called or matches 'conv'",
    ),
    "missing option": (SUBJECT + DATA + "ask: {'MODULE:Needy': {}}", "needy needs the option 'must'"),
    "no probe": (SUBJECT + DATA + "ask: {'MODULE:net': {}}", "is not a probe: expected a subclass of weakspot.Probe"),
    "bounds": (
        "subject: {model: 'MODULE:net', bounds: [1, 0]}\n" + DATA,
        "subject.bounds is .1, 0.: expected two numbers, the smallest and the largest",
    ),
    "device": ("subject: {model: 'MODULE:net', device: toaster}\n" + DATA, "device 'toaster' is not known"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_file_is_said_without_a_trace_back(weakspot, project, case):
    text, message = WRONG[case]
    project.write(text.replace("MODULE", project.module))
    code, out, err = weakspot("examine", project.file)
    assert (code, out) == (2, "")
    assert "weakspot: " in err
    assert "Traceback" not in err
    assert re.search(message.replace("MODULE", project.module), err.replace("\n", " ")), err


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{batch_size: 0}", "execution: batch_size is 0: expected 1 or more"),
        ("{batch_size: many}", "execution: batch_size is 'many', expected a whole number"),
        ("{batchsize: 3}", "execution has no option 'batchsize'; did you mean 'batch_size'?"),
        ("{engine: spark}", "execution: engine is 'spark', expected 'local' or 'ray'"),
        ("{engine_workers: 2}", "execution: engine_workers is for the engine ray: add engine ray"),
        ("3", "execution is 3: expected a mapping such as {batch_size: 16}"),
    ],
)
def test_what_is_wrong_with_the_execution_is_said_with_its_line(weakspot, project, entry, message):
    lines = project.file.read_text().splitlines()
    project.file.write_text("\n".join([*lines, f"execution: {entry}", ""]))
    code, out, err = weakspot("examine", project.file)
    assert (code, out) == (2, "")
    assert f"weakspot.yaml:{len(lines) + 1}: {message}" in err


def test_the_command_line_goes_before_the_execution_of_the_file(weakspot, project):
    text = project.file.read_text()
    project.file.write_text(text + "\nexecution: {batch_size: 3, shard_size: 6}\n")
    assert weakspot("examine", project.file, "--batch-size", 2, "--quiet")[0] == 0
    execution = Run.open(project.run)["coverage.neuron_coverage"].provenance["execution"]
    assert (execution["batch_size"], execution["shard_size"]) == (2, 6)


def test_a_file_that_is_not_there(weakspot, tmp_path):
    code, out, err = weakspot("examine", tmp_path / "weakspot.yaml")
    assert (code, out) == (2, "")
    assert "cannot read" in err
    assert "weakspot.yaml" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--limit", "0"], "a limit of 0 leaves no sample"),
        (["--batch-size", "0"], "batch_size is 0: expected 1 or more"),
        (["--workers", "-1"], "workers is -1"),
        (["--probe", "nothing"], "nothing is called 'nothing'"),
        (["--device", "toaster"], "device 'toaster' is not known"),
        (["--limit", "many"], "valid integer"),
        (["--unknown"], "No such option"),
    ],
)
def test_wrong_options_end_with_2(weakspot, project, arguments, message):
    code, _, err = weakspot("examine", project.file, *arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize("command", ["show", "report"])
def test_a_folder_that_is_no_run(weakspot, tmp_path, command):
    code, out, err = weakspot(command, tmp_path)
    assert (code, out) == (2, "")
    assert "is this a weakspot run?" in err


def test_a_finding_that_is_not_there(weakspot, project):
    weakspot("examine", project.file, "--quiet")
    code, _, err = weakspot("show", project.run, "coverage.nothing")
    assert code == 2
    assert "has no Finding 'coverage.nothing'; it has: coverage." in err


def test_a_folder_of_somebody_elses(weakspot, project, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.doc").write_text("")
    code, _, err = weakspot("examine", project.file, "--run", tmp_path / "mine")
    assert code == 2
    assert "is not empty and holds no weakspot run: choose another folder" in err


def test_a_place_that_cannot_be_written(weakspot, project, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = weakspot("examine", project.file, "--run", tmp_path / "file" / "run")
    assert code == 2
    assert "cannot write to" in err
    weakspot("examine", project.file, "--quiet")
    code, _, err = weakspot("report", project.run, "--output", tmp_path / "file" / "x.html")
    assert code == 2
    assert "cannot write" in err


def test_a_run_that_another_process_writes(weakspot, project):
    run = Run.create(project.run)
    with run.locked():
        code, _, err = weakspot("examine", project.file)
    assert code == 2
    assert f"is being written by process {os.getpid()}" in err


def test_modules_beside_the_file_are_found_only_while_they_are_needed(weakspot, project):
    before = list(sys.path)
    weakspot("examine", project.file, "--quiet")
    assert sys.path == before


SLOW = """
subject: {model: "weakspot.data.digits:model", classes: 10, scores: logits}
data: {train: "weakspot.data.digits:train", test: "weakspot.data.digits:test"}
ask:
  coverage: {criteria: [nc, kmnc], kmnc: {sections: 10}, baseline: false, agreement: false}
  robustness: {looks: 30}
"""


CONTROL_C = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background

def press(event, args):
    if event == "os.rename" and str(args[1]).endswith("shard-000002"):
        os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(press)
"""
"""Ctrl-C in the midst of the third shard, however busy the machine is."""


def test_control_c_leaves_a_run_that_goes_on(weakspot, tmp_path):
    file = tmp_path / "slow.yaml"
    file.write_text(SLOW)
    cut = ["--batch-size", "4", "--shard-size", "24", "--workers", "1", "--limit", "200"]
    python, option, call = COMMAND
    command = [python, option, CONTROL_C + call, "examine", str(file), *cut]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr.rstrip().endswith("weakspot: stopped; the same command resumes from here")
    assert "Traceback" not in ended.stderr
    run = Path(tmp_path / "runs" / "slow")
    kept = {path.relative_to(run): path.stat().st_mtime_ns for path in run.glob("work/*/shard-*")}
    assert kept
    assert not list(run.rglob("*.partial"))
    torch.set_num_threads(1)
    assert weakspot("examine", file, *cut, "--quiet")[0] == 0
    assert weakspot("examine", file, *cut, "--run", tmp_path / "whole", "--quiet")[0] == 0
    assert Run.open(run).manifest() == Run.open(tmp_path / "whole").manifest()
