"""Bad input: how often the command line ends otherwise than with one line and exit code 2, hangs, or leaves something.

    python benchmarks/faults/bad_inputs.py --damaged 400

Writes `bad_inputs.csv` beside this file. Each command is called in this process, with a limit of time:

- every bad configuration and setting of `tests/cli/corpus.py`,
- every call of `tests/cli/bad_options.py`: options of every command with values that cannot be,
- files of every kind (YAML, arrays, CSV, images, zip, IDX, NIfTI, Parquet, weights, policies, labels, all parts of a
  Run), damaged as `tests/cli/damaging.py` has it. Where a damage may do no harm, exit code 0 counts as right, too.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.faults.recording import record
from tests.cli.bad_options import CALLS
from tests.cli.calling import at_most, call, make_project
from tests.cli.corpus import CASES, OPTIONS_WRONG, SET_WRONG
from tests.cli.damaging import MODULE, make_all
from tests.cli.test_bad_input import bad_files, troubles, with_bad_files
from tests.cli.test_bad_options import wrong_calls
from tests.cli.test_damaged_files import damaged_trial, drawn_trials

SECONDS = 60


def _wrong(messages: list[str]) -> int:
    for message in messages:
        print(message, file=sys.stderr)
    return len(messages)


def configurations(folder: Path, count: int) -> int:
    """How many bad configurations and settings end otherwise than they should."""
    broken, home = folder / "broken", folder / "project"
    broken.mkdir(), home.mkdir()
    project, wrong = with_bad_files(make_project(home), bad_files(broken)), []
    tried = 0
    for case, arguments in _configured(project):
        tried += 1
        with at_most(SECONDS):
            ended = call(*arguments)
        wrong += troubles(ended, project, case)[:1]
    assert tried == count
    assert not (broken / "executed").exists()
    return _wrong(wrong)


def _configured(project) -> Iterator[tuple[object, list[object]]]:
    """What is wrong, and the call, when the project's file is written for it."""
    for case, text in CASES:
        project.write(text.replace("MODULE", project.module))
        yield case, ["examine", project.file]
    project.write(ask="robustness: {looks: 3}")
    for setting in SET_WRONG:
        yield setting, ["robustness", project.file, "--set", setting]
    project.write(ask="neuron_coverage: ")
    for options in OPTIONS_WRONG:
        yield options, ["examine", project.file, *options]


def options(folder: Path, count: int) -> int:
    """How many calls with bad options end otherwise than they should."""
    assert count == len(CALLS)
    return len({message.partition("): ")[0] for message in _told(wrong_calls(folder, CALLS))})


def _told(messages: list[str]) -> list[str]:
    _wrong(messages)
    return messages


def damaged_files(folder: Path, count: int) -> int:
    """How many commands that read a damaged file end otherwise than they should."""
    (folder / "nets_of_damaged.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    good, wrong = make_all(folder / "good"), []
    for number, trial in enumerate(drawn_trials(count, "benchmark")):
        wrong += damaged_trial(good, "nets_of_damaged", folder / str(number), trial, number)[1][:1]
    return _wrong(wrong)


def main() -> None:
    """Measure and write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--damaged", type=int, default=400)
    configured = len(CASES) + len(SET_WRONG) + len(OPTIONS_WRONG)
    damaged = parser.parse_args().damaged
    record(
        "bad_inputs",
        [
            ("bad configurations", configured, configurations),
            ("bad options", len(CALLS), options),
            ("damaged input files", damaged, damaged_files),
        ],
    )


if __name__ == "__main__":
    main()
