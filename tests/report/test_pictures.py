"""Pictures of the report: dark ones can be judged, and a root cause is shown by what it goes wrong on."""

import io
import re
from base64 import b64decode

import numpy as np
import pytest
from PIL import Image

from tests.report.browser import installed, running
from tests.viewer.whole_run import make_whole
from weakspot.core.finding import Picture
from weakspot.core.run import Run
from weakspot.data.images import png, strip
from weakspot.report import render, write_report
from weakspot.report.view_models import show_picture


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run.open(make_whole(tmp_path_factory.mktemp("whole") / "run"))


@pytest.mark.parametrize(("grey", "light"), [(4, "brightest"), (30, "brighter"), (60, ""), (200, "")])
def test_a_dark_picture_is_shown_brighter_whatever_gaps_it_has(grey, light):
    tiles = [np.full((20, 20, 3), grey, np.uint8)] * 3
    for pixels in (tiles[0], strip(tiles)):
        assert show_picture("one", Picture(png(pixels), "")).light == light


@pytest.mark.parametrize("content", [b"", b"no picture", png(np.full((2, 2, 3), 255, np.uint8))])
def test_what_is_no_picture_or_white_stays_as_it_is(content):
    assert show_picture("one", Picture(content, "")).light == ""


def test_a_root_cause_is_shown_by_wrong_images_and_correct_ones_like_them(run):
    text = render(run)
    section = text[text.index('id="finding-causes.error_slices"') :]
    section = section[: section.index("</article>")]
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", section)
    row = run["causes.error_slices"].table.to_pylist()[0]
    right = row["images"] - row["errors"]
    assert (
        captions[1] == f"dark (light &lt; 0.2): 60\xa0% wrong, elsewhere 10\xa0%. Wrong: 3 of {row['errors']} images."
    )
    assert captions[2].endswith(f"Correct, and like them: 3 of {right} images.")
    shown = Image.open(io.BytesIO(b64decode(re.findall(r"base64,([^\"]+)\"", section)[0])))
    kept = run["data.pictures"]
    names = kept.table["id"].to_pylist()
    first = kept.arrays["pixels"][names.index(row["incorrect_examples"].split(", ")[0])]
    assert np.array_equal(np.asarray(shown)[:96:3, :96:3], first), "each pixel three times, nothing smoothed"
    assert text.index("dark (light") < text.index('id="finding-causes.error_slices"'), "among the worst findings, too"


@pytest.mark.skipif(installed() is None, reason="needs chromium: apt-get install chromium")
def test_dark_pictures_are_brighter_on_the_page_until_they_are_asked_for_as_they_are(run, tmp_path):
    dark = run["causes.root_causes"]
    media = {"cluster 1": Picture(png(np.full((40, 80, 3), 12, np.uint8)), "A dark one.")}
    other = Run.create(tmp_path / "dark")
    other.describe(subject=run.manifest()["subject"], data=run.manifest()["data"])
    other.save(dark.__class__("causes.errors", "Dark.", media=media))
    page_file = write_report(other, tmp_path / "report.html")
    with running(installed()) as browser:
        page = browser.open(page_file.as_uri(), width=900)
        page.run("document.querySelectorAll('details').forEach(one => (one.open = true))")
        look = "getComputedStyle(document.querySelector('figure.brightest img')).filter"
        assert "brightest" in page.run(look)
        assert "Shown brighter than it is." in page.run("document.querySelector('figure.brightest').innerText")
        page.run("[...document.querySelectorAll('.unfold')].at(-1).click()")
        assert page.run(look) == "none"
        assert "Shown brighter" not in page.run("document.querySelector('figure.brightest').innerText")
        assert page.complaints() == []
