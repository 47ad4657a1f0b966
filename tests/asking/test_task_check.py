"""What a task does not support is said at once, in the words of the file."""

import pytest

from tests.cli.calling import call, make_project
from weakspot.asking.task_check import check_tasks
from weakspot.core.errors import ConfigError

OF_CLASSES = "is for classification, and the model's task is multilabel: leave it out"


def test_all_of_it_is_said_at_once_with_its_lines():
    ask = {
        "coverage": {"criteria": ["nc", "idc", "lsc"], "confidence": True, "agreement": False},
        "robustness": {"neighbours": {"rotate": 10}, "analysis": True, "detector": True},
        "classes": {},
        "causes": {},
    }
    with pytest.raises(ConfigError) as refused:
        check_tasks(ask, "multilabel", lambda *path: f"at {'/'.join(path)}: ")
    assert str(refused.value).splitlines() == [
        "at ask/coverage/criteria/idc: coverage.criteria.idc is for classification or regression, and the model's task "
        "is multilabel: leave it out",
        f"at ask/coverage/criteria/lsc: coverage.criteria.lsc {OF_CLASSES.replace(', and', ' or regression, and')}",
        f"at ask/coverage/confidence: coverage.confidence {OF_CLASSES}",
        f"at ask/robustness/analysis: robustness.analysis {OF_CLASSES}",
        "at ask/robustness/detector: robustness.detector is for classification or regression, and the model's task is "
        "multilabel: leave it out",
    ]


def test_a_question_that_is_for_other_tasks_alone():
    with pytest.raises(ConfigError) as refused:
        check_tasks({"lesions": {}, "classes": {"by": "outputs"}}, "regression")
    first, second = str(refused.value).splitlines()
    assert first.startswith("lesions is for segmentation, and the model's task is regression: take it out of ask")
    assert second.startswith("classes is for classification")


def test_other_reasons_are_told_as_they_are():
    with pytest.raises(ConfigError, match=r"robustness\.neighbours cannot be asked of keypoints: the variation moves"):
        check_tasks({"robustness": {"neighbours": {"rotate": 3}, "tolerance": 3}}, "keypoints")
    with pytest.raises(ConfigError, match="the model's task is regression: give `tolerance`, such as 3"):
        check_tasks({"robustness": {}}, "regression")


@pytest.mark.parametrize("task", ["classification", "multilabel", "regression", "keypoints"])
def test_what_can_be_asked_is_not_refused(task):
    check_tasks({"causes": {}, "coverage": {"criteria": ["nc"]}, "pictures": None}, task)


def test_the_line_of_the_file_is_named(tmp_path):
    project = make_project(tmp_path)
    project.write(
        """subject: {model: "%s:net", scores: logits, task: multilabel}
data: {test: data.npz}
ask:
  causes: {}
  robustness:
    looks: 2
    analysis: true
""".replace("%s", project.module)
    )
    code, _, err = call("examine", project.file)
    assert code == 2 and f"{project.file}:7: robustness.analysis {OF_CLASSES}" in err
