import base64
import os
import re
import subprocess
import sys
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest

from tests.report.reading import Node, read
from tests.report.samples import HOSTILE, MODEL, QUOTED, neighbours, provenance
from weakspot.core.errors import RunError
from weakspot.core.finding import Estimate, Finding, Picture
from weakspot.core.outputs import Headline, Outputs, share
from weakspot.core.run import Run
from weakspot.report import render, write_report
from weakspot.report.provenance import variation_words
from weakspot.report.view_models import ShownVerdict
from weakspot.rooms import QUESTIONS


def section(page: Node, name: str) -> Node:
    return page.one("article", id=f"finding-{name}")


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_head_names_the_model_its_task_and_its_data(run: Run) -> None:
    page = read(render(run))
    head = page.one("header").text
    assert page.one("title").text == f"Net<b> {MODEL[:6]} · weakspot report"
    assert page.one("h1").text == "Net<b>"
    for said in (
        "classification",
        MODEL[:12],
        "Data: train 1,200 samples",
        "Data: test 300 samples",
        "cat, " + HOSTILE,
    ):
        assert said in head
    assert MODEL not in head


def test_the_head_tells_of_samples_that_were_left_out(run: Run) -> None:
    skipped = {"a.png": "a.png is empty", "b.png": "b.png is empty"}
    run.describe(subject={"model": "Net"}, data={"test": {"samples": 298, "skipped": skipped}, "train": {"samples": 9}})
    head = flat(read(render(run)).one("header").text)
    assert "Data: test 298 samples, 2 left out" in head and "Data: train 9 samples" in head
    assert head.count("left out") == 1


def test_where_it_comes_from_is_told_in_words(run: Run) -> None:
    noted = run.manifest()
    attacked = {**noted["data"]["test"], "made": "the split clean, attacked by fgsm with epsilon 0.1"}
    drawn = {**noted["data"]["train"], "made": "300 of 50,000, drawn at random"}
    run.describe(subject={**noted["subject"], "weights": "net.safetensors"}, data={"test": attacked, "train": drawn})
    varied = {"variation": {"is": "weakspot.looks.geometry:Rotate", "degrees": 10, "code": "c" * 64}}
    run.save(Finding("robustness.varied", provenance={**provenance(), "parameters": varied}))
    os.utime(run.folder / "run.json", (1_000_000_000, 1_000_000_000))
    page = read(render(run))
    assert page.one("title").text == "Net<b>, net.safetensors · weakspot report"
    head = flat(page.one("header").text)
    for said in ("Weights net.safetensors", "attacked by fgsm with epsilon 0.1", "300 of 50,000", "9 September 2001"):
        assert said in head
    assert "rotated by up to 10°" in section(page, "robustness.varied").one("p", class_="where").text
    assert "rests on 300 samples train data" in section(page, "coverage.sections").one("p", class_="where").text


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"is": "a:Rotate", "degrees": [-5, 10]}, "rotated by -5 to 10°"),
        ({"is": "a:Jpeg", "quality": 30}, "jpeg (quality 30)"),
        (
            {"is": "a:Either", "ways": [{"is": "a:Shift", "pixels": 2}, {"is": "a:Flip"}]},
            "shifted by up to 2 px or flip",
        ),
        ({"is": "mine:Rotate", "radians": 1}, "rotate (radians 1)"),
    ],
)
def test_variations_are_told_as_people_say_them(told, words) -> None:
    assert variation_words(told) == words


def test_the_overview_leads_to_the_questions(run: Run) -> None:
    lines = {line.one("a").attributes["href"]: flat(line.text) for line in read(render(run)).one("nav").all("li")}
    assert lines == {
        "#room-robustness": "Which inputs are predicted correctly only by luck? 1 Finding",
        "#room-coverage": "Is my test set adequate? 1 Finding",
        "#room-other": "Other results 1 Finding",
        "#room-groundwork": "Intermediate results 1 Finding",
    }


def test_a_folded_finding_shows_its_first_number_with_its_interval(run: Run) -> None:
    outputs = Outputs(summary={"weak_share": share("weak inputs")})
    run.save(Finding("robustness.weak", summary={"weak_share": Estimate(0.5, 0.25, 0.75, 0.95)}, outputs=outputs))
    folded = section(read(render(run)), "robustness.weak").all("summary")[0]
    assert flat(folded.text) == "Weak 50 % weak inputs, 25 % to 75 % (95 % confidence)"


def test_only_the_findings_that_answer_are_unfolded_and_never_those_of_coverage(run: Run) -> None:
    page = read(render(run))
    found = {node.attributes["id"]: node.all("details")[0] for node in page.all("article")}
    assert [name for name, folded in found.items() if "open" in folded.attributes] == []
    outputs = Outputs(summary={"weak_share": share("")}, headlines=(Headline("{weak_share} are weak."),))
    run.save(Finding("robustness.weak", summary={"weak_share": Estimate(0.5)}, outputs=outputs))
    opened = [node for node in read(render(run)).all("article") if "open" in node.all("details")[0].attributes]
    assert [node.attributes["id"] for node in opened] == ["finding-robustness.weak"]


def test_what_leads_comes_first_and_is_not_folded(run: Run) -> None:
    outputs = Outputs(summary={"accuracy": share("")}, headlines=(Headline("{accuracy} are right."),))
    run.save(Finding("performance.performance", summary={"accuracy": Estimate(0.5)}, outputs=outputs))
    page = read(render(run))
    first = page.one("main").all("section")[0]
    assert first.one("h2").text == QUESTIONS["performance"]
    assert flat(first.one("p", class_="answer").text) == "50 % are right."
    assert first.one("article", class_="finding lead").attributes["id"] == "finding-performance.performance"
    assert not [one for one in page.one("dl", class_="answers").all("dt") if one.text == QUESTIONS["performance"]]


def test_a_verdict_comes_before_everything_else(run: Run) -> None:
    page = read(render(run, ShownVerdict("Do not release: 1 of 2 rules does not hold.", ["too many errors: 0.3"])))
    first = page.one("main").all("section")[0]
    assert first.one("h2").text == "Do not release: 1 of 2 rules does not hold."
    assert [line.text for line in first.all("li")] == ["too many errors: 0.3"]
    assert not read(render(run)).all("ul", class_="rules")


def test_every_link_leads_somewhere_and_every_id_is_unique(run: Run) -> None:
    page = read(render(run))
    ids = [node.attributes["id"] for node in page.walk() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    links = {node.attributes["href"] for node in page.all("a")}
    assert len(links) > 5
    assert links <= {f"#{name}" for name in ids}
    labels = {node.attributes["aria-labelledby"] for node in page.walk() if "aria-labelledby" in node.attributes}
    assert labels <= set(ids)


def test_the_summary_is_a_table_of_value_interval_and_meaning(run: Run) -> None:
    rows = section(read(render(run)), "coverage.sections").one("table", class_="summary").one("tbody").all("tr")
    assert [flat(row.text) for row in rows] == [
        "Coverage share of the targets 81.97 %",
        "Unseen share still to come 25 % 12.5 % to 50 % (95 % confidence)",
        "Targets targets that can be covered 12,200",
    ]


def test_values_that_are_no_numbers_are_shown_too(run: Run) -> None:
    rows = section(read(render(run)), "robustness.neighbours").one("table", class_="summary").one("tbody").all("tr")
    assert [row.one("td").text for row in rows] == [HOSTILE, "–", "yes"]


def test_hostile_names_stay_text(run: Run) -> None:
    page = read(render(run))
    assert len(page.all("script")) == 1
    assert "alert" not in page.one("script").text
    assert not [node for node in page.walk() for name in node.attributes if name.startswith("on")]
    found = section(page, "robustness.neighbours")
    pictures = page.all("img")
    assert pictures and all(picture.attributes["alt"] == f"Picture {QUOTED}" for picture in pictures)
    assert found.one("figcaption").text.startswith(HOSTILE)
    assert found.one("table", class_="sortable").one("tbody").all("td")[0].children == [QUOTED]
    assert HOSTILE in found.one("p", class_="about").text
    assert HOSTILE in found.all("details")[-1].text


def test_the_page_asks_for_nothing(run: Run) -> None:
    text = render(run)
    page = read(text)
    assert not page.all("link") and not page.all("iframe")
    plain = re.sub(r"// (Without this script|What a link leads|One button for|Dark pictures)", "", text)
    assert re.findall(r"url\(([^#][^)]*)", text) == [] and "@import" not in text and "//" not in plain
    sources = [node.attributes[name] for node in page.walk() for name in ("src", "srcset") if name in node.attributes]
    assert sources and all(source.startswith("data:image/png;base64,") for source in sources)


def test_the_policy_allows_exactly_the_style_and_the_script_of_the_page(run: Run) -> None:
    text = render(run)
    policy = read(text).one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(sha256(content.encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"
    assert rules["default-src"] == "'none'" and rules["img-src"] == "data:"
    assert " style=" not in text, "the policy would block a style attribute"


def test_the_pictures_are_those_of_the_finding(run: Run) -> None:
    shown = section(read(render(run)), "robustness.neighbours").one("img").attributes
    (picture,) = neighbours().media.values()
    assert base64.b64decode(shown["src"].partition(",")[2]) == picture.png
    assert (shown["width"], shown["height"]) == ("108", "72")  # 3 by 2 pixels, so large that they can be seen


def test_a_picture_without_a_caption_still_has_alt_text(run: Run) -> None:
    run.save(Finding("plain", media={"one": Picture(b"png", "")}))
    found = section(read(render(run)), "plain")
    assert found.one("img").attributes["alt"] == "Picture one"
    assert not found.all("figcaption")


def test_a_long_table_is_cut_and_says_so(run: Run) -> None:
    found = section(read(render(run)), "robustness.neighbours")
    assert len(found.one("table", class_="sortable").one("tbody").all("tr")) == 200
    said = found.one("p", class_="extent").text
    assert found.one("details", class_="rows").one("summary").text == "Table: first 200 of 300 rows"
    assert "Sorting affects only the rows shown." in said
    assert "findings/robustness.neighbours/table.parquet" in said
    assert (run.folder / "findings/robustness.neighbours/table.parquet").is_file()


def test_tables_tell_what_their_cells_belong_to(run: Run) -> None:
    tables = read(render(run)).all("table")
    assert len(tables) > 4
    for table in tables:
        assert table.one("caption").text
        assert all(head.attributes.get("scope") in ("row", "col") for head in table.all("th"))


def test_wide_tables_scroll_in_a_box_that_the_keyboard_reaches(run: Run) -> None:
    for table in read(render(run)).all("div", class_="box"):
        assert table.attributes["tabindex"] == "0" and table.attributes["role"] == "region"
        assert table.attributes["aria-label"]


def test_headings_come_in_order_and_landmarks_are_there(run: Run) -> None:
    page = read(render(run))
    levels = [int(node.tag[1]) for node in page.walk() if re.fullmatch("h[1-6]", node.tag)]
    assert levels.count(1) == 1 and levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(page.one(landmark) for landmark in ("header", "nav", "main", "footer"))
    assert page.one("html").attributes["lang"] == "en"


def test_coverage_is_never_a_verdict(run: Run) -> None:
    page = read(render(run))
    (said,) = page.all("p", class_="caution")  # said once, where coverage begins
    assert "Harel-Canada et al." in said.text and "could be misleading" in said.text and "never a verdict" in said.text
    assert page.one("dl", class_="answers").all("dd")[-1].text.startswith("Coverage alone cannot say.")
    assert not [card for card in page.all("div", class_="card") if "coverage." in card.one("a").attributes["href"]]
    assert not section(page, "robustness.neighbours").all("p", class_="caution")


def test_the_saturation_curve_is_drawn(run: Run) -> None:
    page = read(render(run))
    drawing = section(page, "coverage.sections").one("figure", class_="drawing")
    assert "81.97\u00a0% at 300" in drawing.one("svg").attributes["aria-label"]
    assert drawing.one("figcaption").text
    assert not section(page, "bare").all("svg")


def test_how_it_was_computed_is_told_in_full_and_linked(run: Run) -> None:
    found = section(read(render(run)), "coverage.sections")
    (details,) = [node for node in found.all("details") if node.all("summary")[0].text == "How this was computed"]
    assert "open" not in details.attributes
    leads = {link.attributes["href"] for link in found.one("table", class_="summary").all("a")}
    assert leads == {"#origin-coverage.sections"} == {"#" + details.one("table").attributes["id"]}
    lines = {row.one("th").text: row.one("td") for row in details.all("tr")}
    assert lines["subject"].text == MODEL
    assert lines["parameters › parts › 1 › degrees"].text == "30"
    assert lines["parameters › ranges"].one("a").attributes["href"] == "#finding-coverage.ranges"
    assert run["coverage.ranges"].digest in lines["parameters › ranges"].text
    assert lines["arrays › curve_size"].text == "int64, 3"
    assert lines["digest of this Finding"].text == run["coverage.sections"].digest


def test_a_finding_says_over_which_data(run: Run) -> None:
    page = read(render(run))
    assert "test data" in section(page, "coverage.sections").one("p", class_="where").text
    assert "train data 300 samples" in section(page, "coverage.ranges").one("p", class_="where").text
    assert not page.all("p", class_="warning")


def test_a_finding_of_a_model_that_varies_is_marked(run: Run) -> None:
    run.save(Finding("noisy", provenance={**provenance(), "answers": {"same_each_time": False}}))
    (warning,) = section(read(render(run)), "noisy").all("p", class_="warning")
    assert "answers differently each time" in warning.text


def test_a_finding_of_another_model_or_other_data_is_marked(run: Run) -> None:
    run.save(Finding("old", provenance=provenance(subject="d" * 64, data="e" * 64)))
    warnings = [node.text for node in section(read(render(run)), "old").all("p", class_="warning")]
    assert len(warnings) == 2
    assert "another model (fingerprint dddddddddddd)" in warnings[0]
    assert "data (fingerprint eeeeeeeeeeee)" in warnings[1]


def test_a_question_that_was_asked_of_other_data_alone_is_out_of_date_and_not_unasked(run: Run) -> None:
    run.save(Finding("causes.old", provenance=provenance(data="e" * 64)))
    front = read(render(run)).all("section", class_="front")[0]
    unasked, old = (flat(node.text) for node in front.all("p", class_="quiet"))
    assert unasked.startswith("Not asked in this run:") and "Why does the model fail" not in unasked
    assert old.startswith("Out of date") and old.endswith(
        "Why does the model fail, and what should it be retrained on?"
    )


def test_a_finding_with_nothing_but_a_name_is_shown(run: Run) -> None:
    found = section(read(render(run)), "bare")
    assert found.one("h3").text == "Bare"
    assert "holds no numbers" in found.text
    assert [row.one("th").text for row in found.all("tr")] == ["digest of this Finding"]


def test_an_empty_run_gives_a_page_that_says_so(tmp_path: Path) -> None:
    page = read(render(Run.create(tmp_path / "new")))
    assert page.one("h1").text == "Unnamed model"
    assert "no Findings yet" in page.one("nav").text
    assert "0 Findings" in page.one("footer").text


def test_the_same_run_gives_the_same_bytes_wherever_it_lies(run: Run, tmp_path: Path) -> None:
    first = write_report(run, tmp_path / "one.html").read_bytes()
    run.folder.rename(tmp_path / "moved")
    second = write_report(Run.open(tmp_path / "moved"), tmp_path / "deep" / "two.html").read_bytes()
    assert first == second


def test_a_report_that_cannot_be_written_leaves_nothing_behind(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "taken.html"
    target.mkdir()
    with pytest.raises(RunError, match=r"cannot write .*taken\.html: .*; check free space and permissions"):
        write_report(run, target)
    assert {path.name for path in tmp_path.iterdir()} == {"run", "taken.html"}


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot read .*run\.json: No such file or directory; is this a weakspot run\?"):
        write_report(Run(tmp_path), tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_torch_is_never_loaded(run: Run, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from weakspot.core.run import Run; from weakspot.report import *; "
        "write_report(Run.open(sys.argv[1]), Path(sys.argv[2])); print('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", script, str(run.folder), str(tmp_path / "report.html")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


def test_what_was_asked_for_is_an_answer_even_where_others_were_built_from_it(run, tmp_path):
    noted = run.manifest()
    run.describe(subject=noted["subject"], data=noted["data"], asked=["coverage.ranges"])
    assert "Used by Sections" not in write_report(run, tmp_path / "r.html").read_text(encoding="utf-8")
