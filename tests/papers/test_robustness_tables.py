"""The page of DeepRobust's tables says what the CSVs say."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ROOT / "benchmarks" / "papers"


@pytest.fixture
def tables(script):
    return script("robustness_tables")


def rows_by_seed(count):
    """Two networks; the second lacks the last seed."""
    values = {"a": [0.1 * seed for seed in range(count)], "b": [0.3 * seed for seed in range(count - 1)]}
    return [{"net": net, "seed": str(seed), "f1": str(f1)} for net in values for seed, f1 in enumerate(values[net])]


def test_seeds_that_a_network_lacks_are_left_out(tables):
    assert tables.by_seed(rows_by_seed(3), "f1") == pytest.approx([0.0, 0.2])
    assert tables.spread([0.0, 0.2]) == "0.100 ± 0.141"


@pytest.mark.parametrize("threshold", ["0.75", "0.5"])
def test_means_and_deviations_of_the_page_are_those_of_the_seeds(tables, threshold):
    page = (ROOT / "docs" / "papers-robustness.md").read_text(encoding="utf-8").replace("**", "")
    everything = tables.read(PAPERS / "robustness.csv")
    for draws, method in tables.METHODS:
        own = tables.chosen(everything, draws=draws, method=method, threshold=threshold)
        assert len(own) == (9 if draws == "shared" and method.startswith("black_box") else 45)
        assert tables.spread(tables.by_seed(own, "f1")) in page, (draws, method)


def test_the_page_has_table_5_as_it_was_measured(tables):
    page = (ROOT / "docs" / "papers-robustness.md").read_text(encoding="utf-8")
    lines = tables.sampling_table(tables.read(PAPERS / "robustness_sampling.csv"))
    assert len(lines) == 8 and [line for line in lines if line not in page] == []


def test_everything_can_be_printed(tables, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["robustness_tables.py"])
    tables.main()
    printed = capsys.readouterr().out
    assert all(
        name in printed for name in ("Nine networks", "ConvNet-cifar10", "Table 5", "Table 7", "Cost of a query")
    )
