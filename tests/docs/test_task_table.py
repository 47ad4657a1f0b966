"""The table in README.md: which question serves which task, held against the code."""

import re
from pathlib import Path

import pytest

from weakspot.asking.task_check import check_tasks
from weakspot.core.errors import ConfigError
from weakspot.core.tasks import TASKS
from weakspot.rooms import QUESTIONS
from weakspot.yaml_file import parse_yaml

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
HEADS = ("classification", "multi-label", "regression", "keypoints", "segmentation")


def cells():
    """Question, task and what the table says of them."""
    lines = README.partition(f"| `ask` | {' | '.join(HEADS)} |")[2].strip().splitlines()[1:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[: len(QUESTIONS)]]
    return [(row[0].strip("`"), task, cell) for row in rows for task, cell in zip(TASKS, row[1:], strict=True)]


def test_every_question_and_task_is_there():
    assert tuple(task.replace("multilabel", "multi-label") for task in TASKS) == HEADS
    assert [(question, task) for question, task, _ in cells()] == [(q, task) for q in QUESTIONS for task in TASKS]


@pytest.mark.parametrize(("question", "task", "cell"), cells())
def test_what_it_says_is_so(question, task, cell):
    with_options = re.fullmatch(r"with `(.*)`", cell)
    assert cell in ("yes", "no") or with_options
    if cell == "yes":
        check_tasks({question: {}}, task)
        return
    with pytest.raises(ConfigError):
        check_tasks({question: {}}, task)
    if with_options:
        check_tasks({question: parse_yaml(f"{{{with_options[1]}}}", "README")[0]}, task)
