"""The gate from the outside: exit codes, JUnit, Markdown, JSON, and the pytest plugin."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.gate.samples import coverage, make_run, neighbours, pairs
from weakspot.cli.verdict_commands import gate

BIN = Path(sys.executable).parent


def weakspot(*arguments, folder):
    return subprocess.run([BIN / "weakspot", *arguments], cwd=folder, capture_output=True, text=True, check=False)


GOOD = "- {name: few weak, finding: robustness.neighbours, number: weak_share, at_most: 0.15, confidence: 0.95}\n"
BAD = "- {finding: classes.pairs, column: average_bias, at_most: 0.2}\n"
COVERAGE = "- {finding: coverage.neurons, number: coverage, at_least: 0.5}\n"


@pytest.fixture
def folder(tmp_path):
    make_run(tmp_path / "run", neighbours(), pairs(), coverage())
    for name, rules in (
        ("good", GOOD + COVERAGE),
        ("bad", GOOD + BAD),
        ("wrong", GOOD.replace("few weak", "a") + "- 5\n"),
    ):
        (tmp_path / f"{name}.yaml").write_text(f"rules:\n{rules}")
    return tmp_path


def test_what_holds_and_what_cannot_be_judged(folder):
    good, wrong = (weakspot("gate", "run", f"{name}.yaml", folder=folder) for name in ("good", "wrong"))
    assert (good.returncode, wrong.returncode) == (0, 2)
    assert good.stdout.startswith("passed  robustness.neighbours  few weak: weak_share ≤ 0.15 with 95% confidence\n")
    assert "warning: coverage alone shows no quality" in good.stdout and good.stdout.endswith("2 of 2 rules hold\n")
    assert wrong.stderr.startswith("weakspot: wrong.yaml:3: expected a rule as a mapping, got 5")


def test_what_does_not_hold_with_junit_markdown_and_json(folder):
    done = weakspot(
        "gate", "run", "bad.yaml", "--junit", "out/j.xml", "--markdown", "out/m.md", "--json", folder=folder
    )
    assert done.returncode == 1 and not done.stderr
    told = json.loads(done.stdout)
    assert told["passed"] is False and [rule["passed"] for rule in told["rules"]] == [True, False]
    assert told["rules"][0]["rule"]["at_most"] == 0.15
    suite = ET.parse(folder / "out/j.xml").getroot().find("testsuite")
    assert suite is not None and (suite.attrib["tests"], suite.attrib["failures"]) == ("2", "1")
    first, second = suite.findall("testcase")
    assert first.attrib == {"classname": "robustness.neighbours", "name": "few weak"} and first.find("failure") is None
    failure = second.find("failure")
    assert failure is not None and "<script>" in failure.attrib["message"]
    text = (folder / "out/m.md").read_text()
    assert text.startswith("## weakspot: failed\n\n1 of 2 rules hold for Net.\n")
    rows = [line for line in text.splitlines() if line.startswith(("| ✅", "| ❌"))]
    assert len(rows) == 2 and "&lt;script&gt;" in rows[1] and "a\\|b" in rows[1] and "<script>" not in text


def test_quiet_says_nothing_and_still_fails(folder, capsys):
    assert gate(folder / "run", folder / "bad.yaml", quiet=True) == 1
    assert capsys.readouterr().out == ""
    assert gate(folder / "run", folder / "bad.yaml") == 1
    assert "FAILED  classes.pairs  average_bias of every row ≤ 0.2\n        2 of 3 rows" in capsys.readouterr().out


def pytest_run(*arguments, folder):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_plugin_has_a_test_for_each_rule_and_loads_no_torch(folder):
    (folder / "test_torch.py").write_text("import sys\ndef test_torch():\n    assert 'torch' not in sys.modules\n")
    done = pytest_run("--weakspot-run", "run", "bad.yaml", "good.yaml", "test_torch.py", folder=folder)
    assert done.returncode == 1 and "1 failed, 4 passed" in done.stdout
    assert "average_bias of every row ≤ 0.2: 2 of 3 rows do not" in done.stdout
    assert "Traceback" not in done.stdout


def test_the_plugin_names_what_is_wrong_with_a_policy(folder):
    wrong = pytest_run("--weakspot-run", "run", "wrong.yaml", folder=folder)
    assert wrong.returncode == 2 and "weakspot: " in wrong.stdout and "wrong.yaml:3" in wrong.stdout


def test_the_plugin_does_nothing_unless_asked(folder):
    (folder / "test_own.py").write_text(
        "import sys\ndef test_own():\n    loaded = {n for n in sys.modules if n.startswith('weakspot.')}\n"
        "    own = {f'weakspot.{n}' for n in ('_version', 'lazy', 'gate', 'gate.pytest_plugin')}\n"
        "    assert loaded <= own, loaded\n"
    )
    plain = pytest_run("test_own.py", folder=folder)
    assert "1 passed" in plain.stdout, plain.stdout
