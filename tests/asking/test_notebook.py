"""A notebook, executed: what its cells show of Runs and Findings."""

import os

import nbformat
import pytest
from nbclient import NotebookClient

CELLS = [
    "import weakspot\nfrom weakspot.data import digits\n"
    "run = weakspot.ask(digits.model(), test=digits.test(), limit=40, scores='logits', class_names=digits.CLASSES,\n"
    "                   bounds=(0, 1), robustness={'neighbours': {'rotate': 20}, 'looks': 3}, pictures={})\nrun",
    "run['robustness.neighbour_accuracy']",
    "float(run['robustness.neighbour_accuracy'].summary['weak_share'])",
    "run.to_pandas()",
]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What each cell shows, as HTML or text."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    notebook.cells[0].source = f"import os\nos.chdir({str(folder)!r})\n{notebook.cells[0].source}"
    home = {name: str(folder / name) for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in home.items():
            patch.setenv(name, value)
        patch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
        assert os.environ["IPYTHONDIR"]
        NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    data = [output.data for cell in notebook.cells for output in cell.outputs if output.output_type == "execute_result"]
    return [entry.get("text/html") or entry["text/plain"] for entry in data]


def test_a_run_shows_its_answers(shown):
    assert "Which inputs are predicted correctly only by luck?" in shown[0] and "of the inputs are weak" in shown[0]
    assert "<code>robustness.neighbour_accuracy</code>" in shown[0]


def test_a_finding_shows_numbers_and_rows(shown):
    assert "weak_share" in shown[1] and "<td>" in shown[1]


def test_numbers_are_numbers_and_frames_are_frames(shown):
    assert 0 <= float(shown[2]) <= 1
    assert "dataframe" in shown[3]
