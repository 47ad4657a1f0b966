"""A Run and what is done with it from Python: each gives what the command line gives."""

import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

import weakspot
from weakspot import Answers, Estimate, Finding, Subject
from weakspot.compare import compare_runs
from weakspot.core.errors import ConfigError, RunError
from weakspot.core.run import Run
from weakspot.data import digits
from weakspot.report.html import render

WEAK = "robustness.neighbour_accuracy"


def test_the_report_is_that_of_the_command_line(answers, tmp_path):
    path = answers.report(tmp_path / "page.html")
    assert path.read_text(encoding="utf-8") == render(Run.open(answers.folder))
    assert Answers.open(answers.folder).report() == answers.folder / "report.html"


def test_what_a_call_gives_can_be_opened_again(answers):
    assert isinstance(answers, Answers) and isinstance(Answers.open(str(answers.folder)), Answers)
    assert answers[WEAK].digest == Run.open(answers.folder)[WEAK].digest


def test_numbers_and_tables_as_frames(answers):
    numbers = answers.to_pandas()
    (row,) = numbers[(numbers.finding == WEAK) & (numbers.number == "weak_share")].to_dict("records")
    estimate = answers[WEAK].summary["weak_share"]
    assert {name: row[name] for name in vars(estimate)} == vars(estimate)
    assert len(numbers) == sum(len(finding.summary) for finding in answers)
    assert answers.to_pandas(WEAK)["weak"].tolist() == answers[WEAK].table["weak"].to_pylist()


def test_frames_need_pandas_and_say_so(answers, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigError, match=r"to_pandas needs pandas: pip install 'weakspot\[pandas\]'"):
        answers.to_pandas()


def test_figures_are_those_of_the_report(answers, tmp_path):
    files = answers.figures(tmp_path / "new" / "out")
    assert f"{WEAK}-1.svg" in {path.name for path in files}
    page = render(answers)
    for path in files:
        drawing = ET.parse(path).getroot()
        words = [text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
        assert words and all(f">{word}<" in page for word in words if word.isalnum())


@pytest.mark.parametrize(("format", "begin"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_figures_as_pictures_and_pages(answers, tmp_path, format, begin):
    pytest.importorskip("cairosvg", reason="needs cairosvg and the library cairo", exc_type=OSError)
    files = answers.figures(tmp_path, format=format)
    assert files and all(path.read_bytes().startswith(begin) for path in files)


def test_a_figure_as_a_picture_has_the_colours_of_the_page(answers, tmp_path):
    pytest.importorskip("cairosvg", reason="needs cairosvg and the library cairo", exc_type=OSError)
    from PIL import Image

    (first, *_) = answers.figures(tmp_path, format="png")
    with Image.open(first) as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 24)}
    assert {(26, 31, 38), (255, 255, 255)} <= colours or (26, 31, 38) in colours


def test_other_formats_need_a_package_or_are_refused(answers, tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="format is 'gif': expected one of svg, png, pdf"):
        answers.figures(tmp_path / "out", format="gif")
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(ConfigError, match=r"PNG and PDF need cairosvg: pip install 'weakspot\[figures\]'"):
        answers.figures(tmp_path / "out", format="pdf")
    assert not (tmp_path / "out").exists()


def test_comparing_and_the_gate(answers, tmp_path):
    compared = answers.compare(str(answers.folder))
    assert compared.differences == compare_runs(answers, answers).differences and not compared.shown()
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"rules: [{{finding: {WEAK}, number: weak_share, at_most: 1}}]\n")
    assert answers.gate(policy).passed
    policy.write_text(f"rules: [{{finding: {WEAK}, number: weak_share, at_most: 0}}]\n")
    assert not answers.gate(str(policy)).passed
    policy.write_text(f"rules: [{{finding: {WEAK}, column: weak, worse_by_at_most: 0.5}}]\n")
    assert answers.gate(policy, baseline=answers.folder).passed


def test_the_viewer_is_given_both_runs(answers, monkeypatch):
    from weakspot.viewer import serving

    served = {}
    monkeypatch.setattr(serving, "serve", lambda runs, **options: served.update(runs=runs, **options))
    answers.view(answers.folder, port=0, browser=False)
    assert served["runs"] == [answers.folder, answers.folder]
    assert (served["port"], served["host"], served["browser"]) == (0, "127.0.0.1", False)


def test_what_is_printed_is_short(answers):
    assert repr(answers) == f"Answers({str(answers.folder)!r}, 3 Findings)"
    assert repr(Run.open(answers.folder)).startswith("Run(")
    finding = answers[WEAK]
    first = finding.summary["weak_share"]
    assert repr(finding).startswith(f"Finding({WEAK}, weak_share {first}, ")
    assert repr(finding).endswith("more numbers, table of 60 rows)")
    subject = Subject(digits.model(), classes=10, scores="logits")
    assert repr(subject) == "Subject(DigitNet, classification, 10 classes, logits, cpu)"
    assert float(first) == first.value and float(Estimate(3)) == 3.0


def test_a_damaged_run_can_be_printed(tmp_path):
    assert repr(Run(tmp_path)) == f"Run({str(tmp_path)!r}, damaged)"


def test_a_finding_is_saved_and_loaded_by_a_path_as_text(answers, tmp_path):
    answers[WEAK].save(str(tmp_path / "kept"))
    assert Finding.load(str(tmp_path / "kept")).digest == answers[WEAK].digest


def test_a_finding_without_a_table_says_so(answers, tmp_path):
    run = Answers.create(tmp_path / "run")
    run.save(Finding("mine", summary={"n": Estimate(1)}))
    with pytest.raises(RunError, match="mine has no table"):
        run.to_pandas("mine")
    assert run.to_pandas()["value"].tolist() == [1]


def test_the_package_shows_its_names_and_reading_loads_no_torch(answers, tmp_path):
    assert {"ask", "Answers", "examine", "Subject", "Run"} <= set(dir(weakspot))
    code = f"""
import sys, weakspot
run = weakspot.Answers.open({str(answers.folder)!r})
run.report({str(tmp_path / "a.html")!r}), run.to_pandas(), run.figures({str(tmp_path / "f")!r}), run._repr_html_()
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "False"
