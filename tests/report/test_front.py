"""The first page: answers, the worst, what to do next; and which arrays become which figure."""

import numpy as np
import pytest

from tests.report.samples import HOSTILE
from weakspot.core.figures import Scatter
from weakspot.core.finding import Estimate, Finding, Picture, table_of
from weakspot.core.outputs import Outputs
from weakspot.core.run import Run
from weakspot.data.images import png
from weakspot.report.drawings import figures
from weakspot.report.headlines import answer, by_room
from weakspot.report.next_steps import next_steps
from weakspot.report.page import build_page
from weakspot.report.worst import worst
from weakspot.rooms import QUESTIONS, declared, rooms

PICTURE = Picture(png(np.zeros((4, 8, 3), np.uint8)), "shown")
NUMBER = Estimate(0.25, 0.125, 0.5, 0.95, "share of the inputs")


def made(name, *, table=None, summary=None, **parts):
    """A Finding of a built-in name with what it declares; numbers as plain values."""
    numbers = {key: one if isinstance(one, Estimate) else Estimate(one) for key, one in (summary or {}).items()}
    rows = None if table is None else table_of({key: np.array(values) for key, values in table.items()})
    return Finding(name, summary=numbers, table=rows, outputs=declared(name), **parts)


def said(parts):
    return "".join(part.text for part in parts).replace("\u00a0", " ")


def neighbours(**more):
    summary = {"weak_share": NUMBER, "fragile": 7, "accuracy": NUMBER, "inputs": 100, **more}
    return made("robustness.neighbour_accuracy", summary=summary)


def classes_table(rows=(("cat", 0.9, 0.8, 0.95, 50), (HOSTILE, 0.1, 0.0, 0.2, 50))):
    names = ("class", "weak_share", "weak_low", "weak_high", "inputs")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return made("robustness.class_robustness", table=columns)


def clusters():
    return made(
        "causes.root_causes",
        summary={"errors": 5, "clusters": 2, "images_to_inspect": 5},
        table={
            "cluster": [1, 2],
            "images": [3, 2],
            "share": [0.6, 0.4],
            "low": [0.3, 0.2],
            "high": [0.8, 0.7],
            "shared": ["", ""],
        },
        media={"cluster 2": PICTURE, "cluster 1": PICTURE},
        provenance={"samples": 50},
    )


def pairs(taken=(0.0, 0.3), confused=(True, True)):
    columns = {"first": ["a", "b"], "second": ["b", "c"], "distance": [1.0, 2.0], "confused": confused}
    labelled = {} if taken is None else {"first_taken_for_second": taken, "second_taken_for_first": [0.0, 0.1]}
    parts = {"arrays": {"classes": np.arange(4)}, "media": {"b like c": PICTURE}}
    return made("classes.class_pairs", table={**columns, **labelled}, **parts)


def test_an_answer_gives_its_number_with_the_interval_and_leads_to_how_it_was_computed():
    told = answer("robustness", [neighbours()])
    assert told.question == QUESTIONS["robustness"]
    assert said(told.sentence).startswith("25 % (95 % interval 12.5 % to 50 %) of the inputs are weak")
    assert told.sentence[0].link == "#origin-robustness.neighbour_accuracy"


def test_a_finding_that_lacks_a_number_gives_the_shorter_answer():
    short = made("robustness.neighbour_accuracy", summary={"weak_share": NUMBER})
    assert said(answer("robustness", [short]).sentence).endswith("predicted incorrectly too often.")


def test_corruptions_alone_are_answered_in_a_sentence_and_beside_neighbours_after_them():
    numbers = {"corruption_error": Estimate(0.4), "clean_error": Estimate(0.05), "worst_corruption": Estimate("fog")}
    corruptions = made("robustness.common_corruptions", summary={**numbers, "worst_corruption_error": Estimate(0.7)})
    alone = answer("robustness", [corruptions])
    assert said(alone.sentence) == (
        "Under common corruptions 40 % of the predictions are incorrect, without them 5 %; the share is largest under "
        "fog: 70 %."
    )
    assert alone.finding == "robustness.common_corruptions"
    both = said(answer("robustness", [neighbours(), corruptions]).sentence)
    assert both.startswith("25 %") and both.endswith(said(alone.sentence))


def test_where_a_baseline_is_given_the_answer_has_the_mean_corruption_error_once():
    numbers = {"corruption_error": Estimate(0.4), "clean_error": Estimate(0.05), "worst_corruption": Estimate("fog")}
    numbers |= {"worst_corruption_error": Estimate(0.7), "mean_corruption_error": Estimate(0.8)}
    told = said(answer("robustness", [made("robustness.common_corruptions", summary=numbers)]).sentence)
    assert "The mean corruption error (mCE) is 0.8, where 1 is the baseline's" in told
    assert told.count("Under common corruptions") == 1 and told.endswith("largest under fog: 70 %.")


def test_corruptions_and_attacks_alone_are_answered_by_a_sentence_each():
    numbers = {"corruption_error": Estimate(0.4), "clean_error": Estimate(0.05), "worst_corruption": Estimate("fog")}
    corruptions = made("robustness.common_corruptions", summary={**numbers, "worst_corruption_error": Estimate(0.7)})
    numbers = {"robust_accuracy": Estimate(0.3), "attacks": Estimate("pgd"), "epsilon": Estimate(0.1)}
    numbers |= {"norm": Estimate("linf"), "accuracy": Estimate(0.9)}
    attacks = made("robustness.robust_accuracy", summary=numbers)
    told = said(answer("robustness", [corruptions, attacks]).sentence)
    assert "largest under fog: 70 %. 30 % of the inputs are predicted correctly" in told


def test_coverage_is_answered_without_a_verdict_and_from_the_most_telling_criterion():
    numbers = {"coverage": Estimate(0.5), "unseen": NUMBER, "coverage_of_training": Estimate(0.25)}
    findings = [made("coverage.neuron_coverage", summary=numbers)]
    findings.append(made("coverage.importance_driven_coverage", summary=numbers))
    told = said(answer("coverage", findings).sentence)
    assert told.startswith("Coverage alone cannot say. The test inputs cover 50 % of what importance driven")


def test_a_number_that_is_not_known_is_left_out_of_the_answer():
    numbers = {"coverage": Estimate(0.5), "unseen": Estimate(None), "coverage_of_training": NUMBER}
    told = said(answer("coverage", [made("coverage.neuron_coverage", summary=numbers)]).sentence)
    assert told == "Coverage alone cannot say. The test inputs cover 50 % of what neuron coverage counts."


def test_pairs_without_intervals_are_answered_too():
    numbers = {"confused": Estimate(3), "pairs": Estimate(45), "biased": Estimate(11)}
    told = said(answer("classes", [made("classes.output_pairs", summary=numbers)]).sentence)
    assert told.startswith("3 of 45 pairs of classes look so alike")


def test_where_labels_check_the_pairs_the_headline_says_what_they_say():
    counts = {"confused": 6, "surely_confused": 6, "pairs": 45, "biased": 5, "confusion_true_positives": 4,
              "confusion_missed": 2, "bias_true_positives": 0, "bias_missed": 1}  # fmt: skip
    numbers = {name: Estimate(value) for name, value in counts.items()}
    told = said(answer("classes", [made("classes.class_pairs", summary=numbers)]).sentence)
    assert told == (
        "6 of 45 pairs of classes look so alike to the network that it may confuse them; the labels confirm 4 of these "
        "and show 2 more. Pairs suspected of unequal treatment: 5; the labels confirm 0 of these and show 1 more."
    )
    unlabelled = {name: numbers[name] for name in ("confused", "surely_confused", "pairs", "biased")}
    told = said(answer("classes", [made("classes.class_pairs", summary=unlabelled)]).sentence)
    assert "treated unequally" not in told and told.endswith("Pairs suspected of unequal treatment: 5.")
    two_classes = {
        name: numbers[name] for name in ("confused", "pairs", "confusion_true_positives", "confusion_missed")
    }
    told = said(answer("classes", [made("classes.class_pairs", summary=two_classes)]).sentence)
    assert told.endswith("the labels confirm 4 of these and show 2 more.")


def test_a_finding_of_somebody_elses_is_told_by_its_first_number():
    own = Finding("lesions.mine", summary={"real": Estimate(3, about="lesions that are real")})
    assert said(answer("lesions", [own]).sentence) == "Mine: 3, lesions that are real."
    assert (
        said(answer("lesions", [Finding("lesions.mine")]).sentence) == "No number answers it; see the Findings below."
    )


def test_only_questions_with_findings_were_asked():
    assert list(by_room([neighbours(), Finding("mine"), clusters()])) == ["causes", "robustness"]
    assert set(rooms()) == set(QUESTIONS)


def test_the_worst_are_ordered_by_the_inputs_they_concern():
    found = worst([pairs(), clusters(), classes_table()])
    assert [one.finding for one in found] == [
        "robustness.class_robustness",
        "classes.class_pairs",
        "causes.root_causes",
    ]
    assert [round(one.share, 3) for one in found] == [0.45, 0.1, 0.06]
    assert found[0].title.replace("\u00a0", " ") == "Class “cat”: 90 % of its inputs are weak"
    assert "80 % to 95 %" in found[0].text.replace("\u00a0", " ")
    assert found[1].title == "“b” is predicted as “c”" and [name for name, _ in found[1].pictures] == ["b like c"]
    assert found[2].title == "3 errors with similar heat maps" and found[2].pictures[0][0] == "cluster 1"


def test_without_labels_the_nearest_pair_is_told_as_such():
    (found,) = worst([pairs(taken=None)])
    assert found.title == "“a” and “b” look alike to the network"


def test_the_pair_that_is_mixed_up_most_is_told_though_it_was_not_reported():
    (reported,), (missed,) = worst([pairs()]), worst([pairs(confused=(True, False))])
    assert reported.title == missed.title == "“b” is predicted as “c”"
    assert "Only the labels show it" in missed.text and "Only the labels" not in reported.text


def test_a_pair_by_the_outputs_alone_is_told_by_its_soft_confusion():
    columns = {"first": ["a"], "second": ["b"], "soft_confusion": [0.25], "confused": [True]}
    (found,) = worst([made("classes.output_pairs", table=columns)])
    assert found.title == "“a” and “b” look alike to the network"
    assert "give 25 % to the other" in found.text.replace("\u00a0", " ")


def test_of_several_labels_none_is_taken_for_another(tmp_path):
    run = Run.create(tmp_path / "run")
    run.describe(subject={"task": "multilabel"}, data={})
    run.save(pairs())
    (found,) = build_page(run).worst
    assert found.title == "“c” is predicted beside “b”"
    told = found.text.replace("\u00a0", " ")
    assert told.startswith("Both are predicted for 30 % of the inputs with “b” and without “c”, and for")
    assert told.endswith("of those with “c” and without “b”.") and "predicted as" not in told


def test_coverage_is_never_among_the_worst():
    assert worst([Finding("coverage.holes", media={"hole 1": PICTURE})]) == []


def test_the_worst_class_is_shown_with_its_own_strips():
    strips = made("robustness.weak_strips", table={"id": ["x", "y"]}, media={"x": PICTURE, "y": PICTURE})
    truth = {"id": ["x", "y"], "weak": [True, True], "target": ["dog", "cat"]}
    known = made("robustness.neighbour_accuracy", table=truth)
    found = worst([classes_table(), strips, known])[0]
    assert [name for name, _ in found.pictures] == ["y"]
    unknown = worst([classes_table(), strips])[0]
    assert [name for name, _ in unknown.pictures] == ["x", "y"]


def test_without_classes_the_fragile_inputs_are_told():
    (found,) = worst([neighbours()])
    assert found.title == "7 inputs are predicted correctly only by luck" and found.share == 0.07
    assert worst([neighbours(fragile=0)]) == []


def test_pictures_of_other_findings_fill_up_to_three():
    others = [Finding(f"lesions.a{i}", media={"one": PICTURE}) for i in range(5)]
    assert [one.finding for one in worst([*others, clusters()])] == ["causes.root_causes", "lesions.a0", "lesions.a1"]


def test_steps_rest_on_what_was_found():
    table = {"id": ["p", "q"], "place_gini": [2, 1], "place_nc": [1, 2]}
    numbers = {"apfd_gini": 0.9, "apfd_nc": 0.4}
    ranked = made("coverage.next_inputs", summary=numbers, table=table, media={"hole 1": PICTURE})
    told = [step.text for step in next_steps([ranked, neighbours(), clusters()])]
    assert told[0].startswith("Look at 5 images, a few of each of the 2 clusters")
    assert told[1].startswith("Collect new training inputs like the 7")
    assert "holes" in told[2] and told[3].startswith("Check the inputs that Gini ranks first (q, p …)")
    assert "policy" in told[4] and len(told) == 5
    nowhere = made(
        "coverage.importance_driven_coverage",
        media={"hole 1": PICTURE},
        arrays={"hole_training_inputs": np.array([0, 0])},
    )
    assert "policy" in next_steps([nowhere])[0].text


def test_no_step_trains_on_test_inputs():
    lucky, _ = next_steps([neighbours()])
    assert "Add the 7" not in lucky.text and "These 7 stay in the test set, held out" in lucky.text
    looked_at, _ = next_steps([clusters()])
    assert "new images" in looked_at.text and "in the test set" in looked_at.text
    to_label, _ = next_steps([made("classes.images_to_label", summary={"images": 3, "searched": 9})])
    assert to_label.text.endswith("Train on them only if they are no test inputs.")
    table = {"id": ["p", "q"], "place_gini": [2, 1]}
    ranked, _ = next_steps([made("coverage.next_inputs", summary={"apfd_gini": 0.9}, table=table)])
    assert ranked.text.endswith("Train on them only if they are no test inputs.")


def test_a_cluster_is_told_as_a_suspicion():
    numbers = {"errors": 5, "clusters": 2, "stable_clusters": 1, "images_to_inspect": 5}
    causes = made("causes.root_causes", summary=numbers)
    told = said(answer("causes", [causes]).sentence)
    assert "A cluster may have several causes" in told and "does not mean one cause" in told
    (largest,) = worst([clusters()])
    assert largest.title == "3 errors with similar heat maps" and "They need not have one cause" in largest.text


def test_nothing_found_nothing_to_do():
    assert next_steps([]) == []
    assert len(next_steps([Finding("mine")])) == 1


def test_lesions_that_are_scored_are_to_be_looked_at():
    told, _ = next_steps([made("lesions.scores", summary={"lesions": 24, "expected_false_positives": 11.9})])
    assert told.command == "weakspot lesions export weakspot.yaml" and "the 24 lesions" in told.text


def test_where_the_ground_truth_of_lesions_is_known_the_headline_tells_it():
    numbers = {"lesions": 24, "cases": 8, "expected_false_positives": 11.9}
    told = said(answer("lesions", [made("lesions.scores", summary=numbers)]).sentence)
    assert told.startswith("Of 24 lesions in 8 cases, about 11.9 are expected to be false positives")
    known = made("lesions.scores", summary={**numbers, "false_positives": 15})
    assert said(answer("lesions", [known]).sentence).endswith("15 are, by the ground truth.")


FIGURES = [(name, figure) for room in rooms().values() for name, one in room.findings.items() for figure in one.figures]


@pytest.mark.parametrize(("name", "figure"), FIGURES, ids=[f"{name}-{type(one).__name__}" for name, one in FIGURES])
def test_arrays_of_an_unexpected_shape_never_break_the_page(name, figure):
    """What cannot be drawn is left out or says why; it is never passed over without a word where arrays do not fit."""
    needs = figure.inputs()
    for shape in ((), (0,), (1,), (2, 3, 4)):
        arrays = {n.replace("*", "a"): np.ones(shape) for n in needs if not n.startswith("table.")}
        columns = {n.removeprefix("table."): np.ones(3) for n in needs if n.startswith("table.")}
        rows = table_of(columns) if columns else None
        for drawn in figures(
            Finding(name, arrays=arrays, table=rows, outputs=Outputs(figures=[figure])), ["a", HOSTILE]
        ):
            assert drawn.svg or drawn.problem.startswith("This figure cannot be drawn")


def test_a_figure_that_does_not_fit_says_so():
    broken = Outputs(figures=[Scatter(x="x", y="y", x_label="x", y_label="y", marked="m", caption="Points.")])
    arrays = {"x": np.arange(3.0), "y": np.arange(3.0), "m": np.zeros(7, bool)}
    (drawn,) = figures(Finding("mine", arrays=arrays, outputs=broken), [])
    assert not drawn.svg and "cannot be drawn" in drawn.problem


def retraining():
    rows = [(method, repeat, part) for method in ("unsafe set", "random images") for repeat in ("all", "1")
            for part in ("all", "cluster 1")]  # fmt: skip
    columns = dict(zip(("method", "repeat", "part"), map(np.array, zip(*rows, strict=True)), strict=True))
    ends = {"difference": np.linspace(-0.1, 0.2, 8), "low": np.linspace(-0.2, 0.1, 8), "high": np.linspace(0, 0.3, 8)}
    return made("causes.retraining", table={**columns, **ends})


def test_retraining_is_drawn_by_method_and_by_cause():
    by_method, by_part = (figure.svg for figure in figures(retraining(), []))
    assert "unsafe set" in by_method and "random images" in by_method and "cluster 1" not in by_method
    assert "cluster 1" in by_part and "random images" not in by_part
    assert by_method.count('class="column') == 2 and by_part.count('class="column') == 2


def test_lesions_are_drawn():
    table = {"method": np.array(["gcn", "size"]), "area": np.array([0.8, 0.6])}
    table |= {"low": np.array([0.7, 0.5]), "high": np.array([0.9, 0.7])}
    share = np.linspace(0, 1, 5)
    arrays = {"curve_false_positives": share, "curve_true_positives": np.stack([np.sqrt(share), share])}
    arrays |= {
        "reliability_predicted": share,
        "reliability_observed": np.array([np.nan, 0.0, 0.25, 1.0, 1.0]),
        "reliability_lesions": np.array([0, 1, 100, 1, 1]),
    }
    drawn = [figure.svg for figure in figures(made("lesions.evaluation", table=table, arrays=arrays), [])]
    drawn += [figure.svg for figure in figures(made("lesions.lesion_fit", arrays=arrays), [])]
    assert len(drawn) == 3 and all("<svg" in svg for svg in drawn)
    assert "GCN" in drawn[0] and ">50\xa0% (n = 100)</text>" in drawn[2] and "n = 0" not in drawn[2]
    assert drawn[2].count("marked") == 1  # of 100 lesions with 50 % a quarter is false; single lesions say nothing


def test_every_variation_has_a_curve_with_its_band():
    rows = [("rotation", "degrees", -10.0, 0.0), ("rotation", "degrees", 0.0, 10.0), ("blur", "", 0.0, 1.0)]
    columns = dict(zip(("quantity", "unit", "from", "to"), map(np.array, zip(*rows, strict=True)), strict=True))
    ends = {"accuracy": np.array([0.5, 0.7, 0.6]), "low": np.array([0.4, 0.6, 0.5]), "high": np.array([0.6, 0.8, 0.7])}
    (drawn,) = figures(made("robustness.variation_effects", table={**columns, **ends}), [])
    assert drawn.svg.count("<svg") == 2 and drawn.svg.count('class="band"') == 2 and "rotation (degrees)" in drawn.svg
