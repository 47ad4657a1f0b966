"""Options are checked against a probe's annotations before anything runs."""

import pickle
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from weakspot import Estimate, Finding, Probe, Step
from weakspot.core.errors import ConfigError, ProbeError
from weakspot.core.options import OptionError, checked, described, fits, nearest, shortened

NAN, INFINITY = float("nan"), float("inf")
FITS = [
    (int, [0, -5, 2**62], [1.0, True, "1", None, [1], 2**70, NAN]),
    (float, [0, 1.5, -3], [True, "high", None, [1.0], NAN, INFINITY, 10**400]),
    (bool, [True, False], [0, 1, "yes", None]),
    (str, ["", "a"], [1, None, ["a"], b"a"]),
    (int | None, [3, None], ["x", 1.5]),
    (None, [None], [0, ""]),
    (Literal["a", 1], ["a", 1], ["b", True, 1.0, ["a"]]),
    (tuple[str, ...], [(), ("a", "b")], [["a"], "ab", ("a", 1)]),
    (tuple[int, str], [(1, "a")], [(1,), ("a", 1), (1, "a", 2)]),
    (list[int], [[], [1]], [(1,), ["a"]]),
    (Sequence[str], [["a"], ("a",)], ["ab", [1], 3]),
    (Sequence[Sequence[str]], [[["a", "b"]], ()], ["ab", ["ab"], [[1]]]),
    (Mapping[str, float], [{}, {"a": 1}], [{1: 1}, {"a": "b"}, [1]]),
    (dict[str, Any], [{"a": None}], [3]),
    (Annotated[int, "words"], [3], ["x"]),
    (Callable[[int], int], [abs], [3]),
    (Any, [3, None, "x", [1]], []),
    (Path, [Path("a")], ["a"]),
    (Finding, [Finding("a")], ["a", None, {"name": "a"}]),
    (type[int], [int], [3]),
]


@pytest.mark.parametrize(("annotation", "good", "bad"), FITS, ids=[str(case[0]) for case in FITS])
def test_what_fits(annotation, good, bad):
    assert [value for value in good if not fits(value, annotation)] == []
    assert [value for value in bad if fits(value, annotation)] == []


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (float, "a number"),
        (int | None, "a whole number or none"),
        (str | tuple[str, ...], "text or a list of text"),
        (Literal["a", "b", "c"], "'a', 'b' or 'c'"),
        (Literal["a"], "'a'"),
        (list[float], "a list of numbers"),
        (tuple[int, str], "a list of 2: a whole number, text"),
        (Mapping[str, float], "a mapping from text to a number"),
        (Finding, "a Finding"),
        (Any, "anything"),
        (bool, "true or false"),
    ],
)
def test_what_is_expected_in_words(annotation, words):
    assert described(annotation) == words


def test_lists_become_tuples_only_where_tuples_are_wanted():
    assert checked("o", [["a"], ["b"]], tuple[tuple[str, ...], ...], of="probe") == (("a",), ("b",))
    assert checked("o", ["a"], list[str], of="probe") == ["a"]
    assert checked("o", ["a"], Any, of="probe") == ["a"]


def test_the_error_names_probe_option_value_and_what_was_expected():
    with pytest.raises(OptionError, match="probe: looks is 'many', expected a whole number") as caught:
        checked("looks", "many", int, of="probe")
    assert caught.value.option == "looks"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.option, str(again)) == ("looks", str(caught.value))


def test_long_values_are_cut():
    assert len(shortened("x" * 10_000)) < 100
    assert len(shortened(list(range(10_000)))) < 100
    assert shortened(Path("a/b")) == "a/b"


def test_what_is_spelled_nearly_alike():
    assert nearest("treshold", ["threshold", "layers"]) == "did you mean 'threshold'? "
    assert nearest("xyz", ["threshold", "layers"]) == ""
    assert nearest(3, ["threshold"]) == ""


class Ranges(Probe):
    """Nothing."""

    def observe(self, seen):
        pass

    def finish(self):
        return self.finding(summary={"a": Estimate(1)})


class Counts(Ranges):
    """Refuses what it cannot do as soon as it is made.

    sections: how many.
    ranges: of the training data.
    look: whether to look into the ranges at once.
    """

    sections: int = 3
    look: bool = False
    ranges: Finding

    def __post_init__(self):
        if self.look and self.ranges.name != "ranges":
            raise ConfigError("these are no ranges")
        if self.sections < 1:
            raise ConfigError(f"sections is {self.sections}: expected 1 or more")

    @classmethod
    def upstream(cls, options):
        return {"ranges": Step.of(Ranges)}


def test_a_probe_refuses_its_options_when_the_step_is_made_although_it_waits_for_a_finding():
    with pytest.raises(ConfigError, match="sections is 0"):
        Step.of(Counts, sections=0)
    assert Step.of(Counts, sections=2).options["sections"] == 2


def test_a_probe_that_looks_into_a_finding_to_come_is_tried_later():
    step = Step.of(Counts, look=True)
    with pytest.raises(ConfigError, match="these are no ranges"):
        step.build({step.upstream["ranges"].key: Finding("other")})
    assert step.build({step.upstream["ranges"].key: Finding("ranges")}).sections == 3


def test_a_finding_cannot_be_written_as_text():
    with pytest.raises(OptionError, match="ranges is 'x', expected a Finding"):
        Step.of(Counts, ranges="x")
    assert Step.of(Counts, ranges=Finding("ranges")).upstream == {}


def test_a_split_is_text():
    with pytest.raises(OptionError, match="split is 3, expected text"):
        Step.of(Ranges, split=3)
    with pytest.raises(OptionError, match="split is \\['test'\\], expected text"):
        Step(Ranges, split=["test"])


def test_an_annotation_that_means_nothing_is_told():
    class Odd(Ranges):
        """Odd.

        a: odd.
        """

        a: "NoSuchThing" = 1  # noqa: F821

    with pytest.raises(ProbeError, match="odd annotates an option with what its module does not know"):
        Step.of(Odd, a=2)
