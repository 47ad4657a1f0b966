"""`make papers` runs every script that makes a table, and networks come before what asks about them."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACK_DATA_ONLY = {"causes_faces", "causes_signs"}


@pytest.fixture(scope="module")
def listed():
    if shutil.which("make") is None:
        pytest.skip("needs make")
    told = subprocess.run(["make", "-n", "papers"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return told.split("for script in ")[1].split(";")[0].split()


def test_no_script_is_forgotten(listed):
    scripts = {path.stem for path in (ROOT / "benchmarks" / "papers").glob("*.py") if "__main__" in path.read_text()}
    assert sorted(listed) == sorted(scripts - PACK_DATA_ONLY)


def test_what_others_need_comes_first(listed):
    place = {name: number for number, name in enumerate(listed)}
    assert place["steering_nets"] < place["importance_nets"] < place["importance"] < place["importance_tables"]
    assert place["robustness"] < place["robustness_study"] and place["lesions_ms"] < place["lesions_figure"]
