"""Sentences of the documentation with the numbers that the CSVs beside this script give: `python prose.py`.

It prints the sentences that a page does not hold. A test runs it, so that a page cannot drift from what was measured.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs"


def tried(table: str, *names: str) -> str:
    """How many of something were tried, all of them where nothing is named; an error if any went wrong."""
    with (HERE / f"{table}.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if not names or row["what"] in names]
    wrong = [row["what"] for row in rows if int(row["wrong"])]
    if wrong or len(rows) < len(names):
        raise ValueError(f"{table}.csv does not show what the documentation says of {wrong or names}")
    return f"{sum(int(row['tried']) for row in rows):,}"


def sentences() -> Iterator[str]:
    """Every sentence that is held against the page on limits."""
    yield f"{tried('damage', 'damaged shards', 'damaged Findings')} damaged shards and Findings, none was used"
    yield f"{tried('damage', 'power cuts')} simulated power cuts all Runs ended with the same bytes"
    yield f"{tried('hostile_files')} hostile archives, weights and arrays none ran code or wrote a file"
    inputs = tried("bad_inputs", "bad configurations", "bad options")
    yield f"{inputs} bad configurations and options each ended with exit code 2 and one message"
    damaged = tried("bad_inputs", "damaged input files")
    yield f"{damaged} damaged input files none led to a trace-back, a hang or a file left behind"
    yield f"{tried('command_line')} known ways to hang or crash the command line"


def missing() -> list[str]:
    """The sentences that the page does not hold, whatever its line breaks."""
    page = " ".join((DOCS / "limits.md").read_text(encoding="utf-8").split())
    return [text for text in sentences() if text not in page]


if __name__ == "__main__":
    for sentence in missing():
        print(f"docs/limits.md lacks: {sentence}")
