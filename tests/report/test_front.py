"""The first page: answers, the worst, what to do next; and which arrays become which figure."""

import numpy as np
import pytest

from tests.report.samples import HOSTILE
from weakspot.core.finding import Estimate, Finding, Picture, table_of
from weakspot.core.run import Run
from weakspot.data.images import png
from weakspot.questions import QUESTIONS
from weakspot.report.answers import SENTENCES, answer, by_room
from weakspot.report.page import build_page
from weakspot.report.recipes import RECIPES, figures
from weakspot.report.steps import next_steps
from weakspot.report.worst import worst

PICTURE = Picture(png(np.zeros((4, 8, 3), np.uint8)), "shown")
NUMBER = Estimate(0.25, 0.125, 0.5, 0.95, "share of the inputs")


def said(parts):
    return "".join(part.text for part in parts).replace("\u00a0", " ")


def neighbours(**more):
    summary = {"weak_share": NUMBER, "lucky": Estimate(7), "accuracy": NUMBER, "inputs": Estimate(100), **more}
    return Finding("robustness.neighbours", summary=summary)


def classes_table(rows=(("cat", 0.9, 0.8, 0.95, 50), (HOSTILE, 0.1, 0.0, 0.2, 50))):
    names = ("class", "weak_share", "weak_low", "weak_high", "inputs")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return Finding("robustness.by_class", table=table_of({k: np.array(v) for k, v in columns.items()}))


def clusters():
    table = table_of({"cluster": np.array([1, 2]), "images": np.array([3, 2]), "share": np.array([0.6, 0.4])})
    return Finding(
        "causes.clusters",
        summary={"errors": Estimate(5), "clusters": Estimate(2), "images_to_inspect": Estimate(5)},
        table=table,
        media={"cluster 2": PICTURE, "cluster 1": PICTURE},
        provenance={"samples": 50},
    )


def pairs(taken=(0.0, 0.3), confused=(True, True)):
    columns = {"first": ["a", "b"], "second": ["b", "c"], "distance": [1.0, 2.0], "confused": confused}
    labelled = {} if taken is None else {"first_taken_for_second": taken, "second_taken_for_first": [0.0, 0.1]}
    table = table_of({name: np.array(values) for name, values in {**columns, **labelled}.items()})
    return Finding("classes.pairs", table=table, arrays={"classes": np.arange(4)}, media={"b like c": PICTURE})


def test_an_answer_gives_its_number_with_the_interval_and_leads_to_how_it_was_computed():
    told = answer("robustness", [neighbours()])
    assert told.question == QUESTIONS["robustness"]
    assert said(told.sentence).startswith("25 % (95 % interval 12.5 % to 50 %) of the inputs are weak")
    assert told.sentence[0].link == "#origin-robustness.neighbours"


def test_a_finding_that_lacks_a_number_gives_the_shorter_answer():
    short = Finding("robustness.some", summary={"weak_share": NUMBER})
    assert said(answer("robustness", [short]).sentence).endswith("answered wrongly too often.")


def test_coverage_is_answered_without_a_verdict_and_from_the_most_telling_criterion():
    numbers = {"coverage": Estimate(0.5, about="share"), "unseen": NUMBER, "coverage_of_training": Estimate(0.25)}
    findings = [Finding("coverage.neuron_coverage", summary=numbers)]
    findings.append(Finding("coverage.importance_driven_coverage", summary=numbers))
    told = said(answer("coverage", findings).sentence)
    assert told.startswith("Nobody can say from coverage alone. Test inputs reach 50 % of what importance driven")


def test_a_number_that_is_not_known_is_left_out_of_the_answer():
    numbers = {"coverage": Estimate(0.5, about="share"), "unseen": Estimate(None), "coverage_of_training": NUMBER}
    told = said(answer("coverage", [Finding("coverage.neuron_coverage", summary=numbers)]).sentence)
    assert told == "Nobody can say from coverage alone. Test inputs reach 50 % of what neuron coverage counts."


def test_pairs_without_intervals_are_answered_too():
    numbers = {"confused": Estimate(3), "pairs": Estimate(45), "biased": Estimate(11)}
    told = said(answer("classes", [Finding("classes.output_pairs", summary=numbers)]).sentence)
    assert told.startswith("3 of 45 pairs of classes look so alike")


def test_a_finding_of_somebody_elses_is_told_by_its_first_number():
    own = Finding("lesions.mine", summary={"real": Estimate(3, about="lesions that are real")})
    assert said(answer("lesions", [own]).sentence) == "Mine: 3, lesions that are real."
    assert said(answer("lesions", [Finding("lesions.mine")]).sentence) == "No number answers it; see what was found."


def test_only_questions_with_findings_were_asked():
    assert list(by_room([neighbours(), Finding("mine"), clusters()])) == ["robustness", "causes"]
    assert set(SENTENCES) == set(QUESTIONS)


def test_the_worst_are_ordered_by_the_inputs_they_concern():
    found = worst([pairs(), clusters(), classes_table()])
    assert [one.finding for one in found] == ["robustness.by_class", "classes.pairs", "causes.clusters"]
    assert [round(one.concerns, 3) for one in found] == [0.45, 0.1, 0.06]
    assert found[0].title.replace("\u00a0", " ") == "Class “cat”: 90 % of its inputs are weak"
    assert "80 % to 95 %" in found[0].told.replace("\u00a0", " ")
    assert found[1].title == "“b” is taken for “c”" and [picture.name for picture in found[1].pictures] == ["b like c"]
    assert found[2].title == "3 errors with one likely cause" and found[2].pictures[0].name == "cluster 1"


def test_without_labels_the_nearest_pair_is_told_as_such():
    (found,) = worst([pairs(taken=None)])
    assert found.title == "“a” and “b” look alike to the network"


def test_the_pair_that_is_mixed_up_most_is_told_though_it_was_not_reported():
    (reported,), (missed,) = worst([pairs()]), worst([pairs(confused=(True, False))])
    assert reported.title == missed.title == "“b” is taken for “c”"
    assert "Only labels show it" in missed.told and "Only labels" not in reported.told


def test_a_pair_by_the_outputs_alone_is_told_by_its_leaning():
    columns = {"first": ["a"], "second": ["b"], "leaning": [0.25], "confused": [True]}
    (found,) = worst([Finding("classes.by_outputs", table=table_of(columns))])
    assert found.title == "“a” and “b” look alike to the network"
    assert "give 25 % to the other" in found.told.replace("\u00a0", " ")


def test_of_several_labels_none_is_taken_for_another(tmp_path):
    run = Run.create(tmp_path / "run")
    run.describe(subject={"task": "multilabel"}, data={})
    run.save(pairs())
    (found,) = build_page(run).worst
    assert found.title == "“c” is predicted beside “b”"
    told = found.told.replace("\u00a0", " ")
    assert told.startswith("Both are predicted for 30 % of the inputs with “b” and without “c”, and for")
    assert told.endswith("of those with “c” and without “b”.") and "taken for" not in told


def test_coverage_is_never_among_the_worst():
    assert worst([Finding("coverage.holes", media={"hole 1": PICTURE})]) == []


def test_the_worst_class_is_shown_with_its_own_strips():
    strips = Finding(
        "robustness.strips",
        table=table_of({"id": np.array(["x", "y"]), "answers": np.array(["1 2", "1 3"])}),
        media={"x": PICTURE, "y": PICTURE},
    )
    truth = {"id": np.array(["x", "y"]), "weak": np.array([True, True]), "target": np.array(["dog", "cat"])}
    known = Finding("robustness.known", table=table_of(truth))
    found = worst([classes_table(), strips, known])[0]
    assert [picture.name for picture in found.pictures] == ["y"]
    unknown = worst([classes_table(), strips])[0]
    assert [picture.name for picture in unknown.pictures] == ["x", "y"]


def test_without_classes_the_lucky_inputs_are_told():
    (found,) = worst([neighbours()])
    assert found.title == "7 inputs answered rightly by luck" and found.concerns == 0.07
    assert worst([neighbours(lucky=Estimate(0))]) == []


def test_pictures_of_other_findings_fill_up_to_three():
    others = [Finding(f"lesions.a{i}", media={"one": PICTURE}) for i in range(5)]
    assert [one.finding for one in worst([*others, clusters()])] == ["causes.clusters", "lesions.a0", "lesions.a1"]


def test_steps_rest_on_what_was_found():
    table = table_of({"id": np.array(["p", "q"]), "place_gini": np.array([2, 1]), "place_nc": np.array([1, 2])})
    numbers = {"apfd_gini": Estimate(0.9), "apfd_nc": Estimate(0.4)}
    ranked = Finding("coverage.next", summary=numbers, table=table, media={"hole 1": PICTURE})
    told = [step.text for step in next_steps([ranked, neighbours(), clusters()])]
    assert told[0].startswith("Look at 5 images, a few from each of the 2 clusters")
    assert told[1].startswith("Add the 7 inputs that are right only by luck")
    assert told[2].startswith("Label the inputs that Gini ranks first (q, p …)")
    assert "holes" in told[3] and "policy" in told[4] and len(told) == 5
    nowhere = Finding("coverage.idc", media={"hole 1": PICTURE}, arrays={"hole_training_inputs": np.array([0, 0])})
    assert "policy" in next_steps([nowhere])[0].text


def test_nothing_found_nothing_to_do():
    assert next_steps([]) == []
    assert len(next_steps([Finding("mine")])) == 1


def test_lesions_that_are_scored_are_to_be_looked_at():
    numbers = {"lesions": Estimate(24), "expected_false_positives": Estimate(11.9, 9.5, 14.3, 0.95)}
    told, _ = next_steps([Finding("lesions.scores", summary=numbers)])
    assert told.command == "weakspot lesions export weakspot.yaml" and "about 11.9 are none" in told.text


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.needs[-1])
def test_arrays_of_an_unexpected_shape_never_break_the_page(recipe):
    for shape in ((), (0,), (1,), (2, 3, 4)):
        arrays = {n.replace("*", "a"): np.ones(shape) for n in recipe.needs if not n.startswith("table.")}
        columns = {n.removeprefix("table."): np.ones(3) for n in recipe.needs if n.startswith("table.")}
        figures(Finding("mine", arrays=arrays, table=table_of(columns) if columns else None), ["a", HOSTILE])


def retraining():
    rows = [(method, repeat, part) for method in ("unsafe set", "random images") for repeat in ("all", "1")
            for part in ("all", "cluster 1")]  # fmt: skip
    columns = dict(zip(("method", "repeat", "part"), map(np.array, zip(*rows, strict=True)), strict=True))
    ends = {"difference": np.linspace(-0.1, 0.2, 8), "low": np.linspace(-0.2, 0.1, 8), "high": np.linspace(0, 0.3, 8)}
    return Finding("causes.retraining", table=table_of({**columns, **ends}))


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
        "reliability_said": share,
        "reliability_found": share**2,
        "reliability_lesions": np.array([0, 1, 1, 1, 1]),
    }
    drawn = [figure.svg for figure in figures(Finding("lesions.x", table=table_of(table), arrays=arrays), [])]
    assert len(drawn) == 3 and all("<svg" in svg for svg in drawn)
    assert "GCN" in drawn[0] and "as said" in drawn[2]


def test_what_the_members_of_clusters_share_is_a_matrix_of_clusters_by_parameters():
    arrays = {
        "trait_reduction": np.array([[0.9, -0.5], [0.1, 1.0]]),
        "parameter_names": np.array(["light", "gaze_angle"]),
    }
    (drawn,) = figures(Finding("causes.x", arrays=arrays), [])
    for said in (">90<", ">100<", ">0<", ">gaze angle<", ">cluster 2<"):
        assert said in drawn.svg


def test_every_variation_has_a_curve_with_its_band():
    rows = [("rotation", "degrees", -10.0, 0.0), ("rotation", "degrees", 0.0, 10.0), ("blur", "", 0.0, 1.0)]
    columns = dict(zip(("quantity", "unit", "from", "to"), map(np.array, zip(*rows, strict=True)), strict=True))
    ends = {"accuracy": np.array([0.5, 0.7, 0.6]), "low": np.array([0.4, 0.6, 0.5]), "high": np.array([0.6, 0.8, 0.7])}
    (drawn,) = figures(Finding("robustness.x", table=table_of({**columns, **ends})), [])
    assert drawn.svg.count("<svg") == 2 and drawn.svg.count('class="band"') == 2 and "rotation (degrees)" in drawn.svg
