"""The page "Performance": one click from a class or a confusion to its samples; pictures that can be brightened."""

import numpy as np
import pytest
import torch

from tests.viewer.driving import DESKTOP, PHONE, beyond, needs_chromium, opened, serving, settled, violations
from tests.viewer.runs import client_of
from weakspot import Subject, ask
from weakspot.core.run import Run


@pytest.fixture(scope="module")
def told(small_run):
    return client_of(small_run).get("/api/performance").json()


def matching(small_run, filters):
    return client_of(small_run).get("/api/samples", params={"filter": filters, "limit": 0}).json()["matching"]


def test_every_class_and_confusion_leads_to_its_samples(small_run, told):
    finding = Run.open(small_run)["performance.performance"]
    assert [one["name"] for one in told["classes"]] == finding.arrays["class_name"].tolist()
    assert sum(one["inputs"] for one in told["classes"]) == finding.summary["inputs"].value
    for one in told["classes"][:3]:
        assert matching(small_run, one["filter"]) == one["inputs"]
    assert sum(one["inputs"] for one in told["confusions"]) == finding.summary["errors"].value
    for one in told["confusions"][:3]:
        assert matching(small_run, one["filter"]) == one["inputs"]
    assert matching(small_run, told["errors"]) == finding.summary["errors"].value
    assert told["sort"] == "-confidence"


@needs_chromium
@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_the_page_opens_cleanly_and_leads_on(small_run, told, chromium, size, scheme):
    with serving(small_run) as address:
        page = opened(chromium, address, "/performance", size=size, scheme=scheme)
        page.wait("document.querySelectorAll('.thumbs canvas').length > 5")
        settled(page)
        assert violations(page) == [] and page.complaints() == [] and beyond(page, address) == []
        assert page.run("document.documentElement.scrollWidth - innerWidth") <= 0
        first = told["confusions"][0]
        assert f"{first['target']} → {first['prediction']}" in page.run("document.querySelector('.columns').innerText")
        page.press("i")
        assert "brightness" in page.run("getComputedStyle(document.querySelector('.thumbs canvas')).filter")
        page.press("i", "i", "i")
        assert page.run("getComputedStyle(document.querySelector('.thumbs canvas')).filter") == "none"
        page.click(".columns section:nth-of-type(2) tbody a")
        count = "document.querySelector('.tools [role=status]')?.textContent.startsWith"
        page.wait(f"location.pathname === '/samples' && {count}('{first['inputs']} of ')")
        page.wait("document.querySelector('.cell.wrong[data-ready=\"1\"]')")
        words = page.run("[...document.querySelectorAll('.cell.wrong span')].map(one => one.textContent)")
        assert f"is {first['target']}" in words and first["prediction"] in " ".join(words)


def test_a_segmentation_shows_its_classes_and_what_overlaps_least(tmp_path):
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 2, (30, 6, 6))
    shown = np.where(rng.random(targets.shape) < 0.2, 1 - targets, targets)[:, None].astype(np.float32)
    net = Subject(
        lambda x: torch.cat([0.5 - x, x - 0.5], 1), task="segmentation", classes=("sky", "road"), fingerprint="t 1"
    )
    run = ask(net, test=(shown, targets), performance={}, pictures={}, run=tmp_path / "run")
    client = client_of(run.folder)
    told = client.get("/api/performance").json()
    found = run["performance.performance"]
    assert told["measure"] == "IoU" and "The mean IoU is" in told["answer"]
    assert [one["name"] for one in told["classes"]] == found.arrays["class_name"].tolist()
    assert [one["accuracy"] for one in told["classes"]] == pytest.approx(found.arrays["class_iou"].tolist())
    assert told["errors"] == [] and told["sort"].endswith("iou")
    first = client.get("/api/samples", params={"split": told["split"], "sort": told["sort"], "limit": 3}).json()
    least = found.table.sort_by("iou")["id"].to_pylist()[:3]
    assert [row["id"] for row in first["rows"]] == least
