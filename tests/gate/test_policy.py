"""Policies: what is read, and that every mistake is named with its line."""

import re
import textwrap
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from weakspot.core.errors import ConfigError
from weakspot.gate.policy import PolicyRule, read_policy


def policy(tmp_path, text):
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    return read_policy(path)


def test_rules_are_read_with_their_lines(tmp_path):
    read = policy(
        tmp_path,
        "baseline: runs/last\nrules:\n- finding: a.b\n  number: weak_share\n  at_most: 0.15\n  confidence: 0.95\n"
        "- {finding: a.c, column: bias, where: {confused: true}, at_most: 1}\n",
    )
    assert read.baseline == tmp_path / "runs/last"
    assert read.rules[0] == PolicyRule(finding="a.b", number="weak_share", at_most=0.15, confidence=0.95)
    assert read.rules[0].claim == "weak_share ≤ 0.15 with 95% confidence"
    assert read.rules[1].claim == "bias of every row with confused = True ≤ 1"
    assert read.where(1) == f"{tmp_path}/policy.yaml:7"
    assert read.where(0, "at_most") == f"{tmp_path}/policy.yaml:5"


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("number: a\n  at_mots: 1", r":4: a rule has no 'at_mots': did you mean 'at_most'\?"),
        ("number: a\n  at_most: high", ":4: rule: at_most is 'high', expected a number or none"),
        ("number: a\n  at_most: .nan", ":4: rule: at_most is nan, expected a number or none"),
        ("number: a", ":2: the rule has no condition for number: give one of at_most, at_least, equals"),
        ("number: a\n  at_most:", ":2: the rule has no condition for number"),
        ("number: a\n  exists: false", ":2: the rule has no condition for number"),
        ("at_most: 1", ":2: a rule is about one of number, column, share, new_causes; this one has none"),
        ("number: a\n  column: b\n  at_most: 1", "this one has number and column"),
        ("number: a\n  at_most: 1\n  equals: 1", ":5: at_most and equals cannot be combined"),
        ("new_causes: 0\n  at_most: 1", ":4: new_causes is a bound itself: leave out at_most"),
        ("column: a\n  exists: true", ":4: exists can be used with a number only"),
        ("number: a\n  at_most: 1\n  where: {b: 1}", ":5: where can be used with a column or share only"),
        ("number: a\n  at_most: 1\n  confidence: 95", ":5: confidence is 95, expected a number from 0 to 1"),
        ("column: a\n  at_most: 1\n  confidence: 0.9", ":5: rows have no interval"),
        ("new_causes: some", ":3: rule: new_causes is 'some', expected a whole number or none"),
    ],
)
def test_mistakes_in_a_rule_are_named_with_their_line(tmp_path, rule, said):
    with pytest.raises(ConfigError, match=re.compile(said)):
        policy(tmp_path, f"rules:\n- finding: a.b\n  {rule}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("- a", ":1: expected a mapping with the key rules"),
        ("rule: []", ":1: unknown key 'rule': did you mean 'rules'"),
        ("rules: []", ":1: expected a list of rules, got []"),
        ("rules: 5", ":1: expected a list of rules, got 5"),
        ("rules: [5]", ":1: expected a rule as a mapping, got 5"),
        ("rules:\n- number: a\n  at_most: 1", ":2: a rule needs a finding"),
        ("baseline: 5\nrules: [{finding: a.b, number: a, at_most: 1}]", ":1: policy: baseline is 5, expected text"),
        ("rules: [", "this is not valid YAML"),
        (
            "rules:\n- {finding: coverage.x, number: coverage, at_least: 0.9}",
            ":1: every rule is about coverage, which alone",
        ),
    ],
)
def test_mistakes_in_the_file_are_named(tmp_path, text, said):
    with pytest.raises(ConfigError) as caught:
        policy(tmp_path, text)
    assert said in str(caught.value)


def test_a_bound_of_zero_and_equals_false_are_conditions(tmp_path):
    read = policy(
        tmp_path, "rules:\n- {finding: a.b, number: a, at_most: 0}\n- {finding: a.b, number: b, equals: false}"
    )
    assert [rule.claim for rule in read.rules] == ["a ≤ 0", "b = False"]


def test_a_policy_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read .*none\.yaml: No such file"):
        read_policy(tmp_path / "none.yaml")


GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "howto-gate.md").read_text()


@pytest.mark.parametrize("key", [own.name for own in fields(PolicyRule)])
def test_every_key_of_a_rule_is_documented(key):
    assert f"`{key}`" in GUIDE and f"{key}" in (PolicyRule.__doc__ or "")


def test_the_workflow_in_the_guide_is_valid_and_calls_the_gate():
    block = re.findall(r"^    # \.github/workflows/weakspot\.yml\n((?:    .*\n|\n)+)", GUIDE, re.MULTILINE)[0]
    steps = yaml.safe_load(textwrap.dedent(block))["jobs"]["gate"]["steps"]
    assert any("weakspot gate" in step.get("run", "") for step in steps)
