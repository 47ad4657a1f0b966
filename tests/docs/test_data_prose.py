"""What the page on your own data says was measured is what the CSVs beside the scripts say."""

import csv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs" / "howto-data.md").read_text(encoding="utf-8").split())


def rows(table, **equal):
    with (ROOT / "benchmarks" / "data" / f"{table}.csv").open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if all(row[name] == value for name, value in equal.items())]


def percents(*shares):
    return " to ".join(f"{100 * float(share):.1f}" for share in shares)


def test_intervals_with_and_without_groups():
    frames, tracks = rows("grouped", tracks="470")
    assert f"accuracy {percents(tracks['accuracy'])} % has a 95 % interval of " in PAGE
    assert f"{percents(frames['low'], frames['high'])} % as if frames were independent" in PAGE
    assert (
        f"{percents(tracks['low'], tracks['high'])} % by track: the design effect is {tracks['design_effect']}" in PAGE
    )
    plain, grouped = (f"{100 * float(row['coverage']):.0f} %" for row in rows("grouped", tracks="100"))
    assert f"holds the true value in {plain}, the second in {grouped}" in PAGE


def test_copies_in_real_data():
    for row in rows("duplicates"):
        if row["data"] in ("made", "50,000 x 50,000"):
            continue
        leaked = int(row["leaked_exact"]) + int(row["leaked_near"])
        repeated = int(row["repeated_exact"]) + int(row["repeated_near"])
        name = row["data"].replace("faces, as", "YouTube faces, as").replace("faces, by", "YouTube faces, split by")
        name = name.replace("driving, in", "driving simulator, split in").replace(
            "driving, sh", "driving simulator, sh"
        )
        assert f"| {name} | {int(row['test']):,} | {leaked} | {repeated} |" in PAGE
    [large], [made] = rows("duplicates", data="50,000 x 50,000"), rows("duplicates", data="made")
    assert f"takes {float(large['seconds']):.0f} s on one core and {large['gib']} GiB" in PAGE
    assert f"half of them resized, {100 * float(made['found']):.2f} % are found" in PAGE


def test_features_and_the_hash():
    *found, small, large = rows("feature_copies")
    for row in found:
        shares = [f"{100 * float(row[name]):.1f} %".replace("100.0", "100") for name in list(row)[2:-1]]
        assert f"| {int(row['wrongly']):,} | {' | '.join(shares)} |" in PAGE
    for row, size in ((small, "an image of 32 × 32 pixels"), (large, "one of 224 × 224")):
        assert f"{float(row['milliseconds']):.1f} ms" in PAGE and size in PAGE
