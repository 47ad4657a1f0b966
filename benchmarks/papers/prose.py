"""Sentences of the documentation with the numbers that the CSVs beside this script give: `python prose.py`.

It prints the sentences that a page does not hold. A test runs it, so that a page cannot drift from what was measured.
"""

import csv
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs"
Row = dict[str, str]
Sentence = tuple[str, str]  # page, text


def rows(table: str, **equal: str) -> list[Row]:
    """The rows of a CSV in which the named columns hold these values."""
    with (HERE / f"{table}.csv").open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if all(row[name] == value for name, value in equal.items())]


def mean_f1(draws: str, method: str, threshold: str) -> str:
    """Mean F1 over nine networks and their seeds."""
    values = [float(row["f1"]) for row in rows("robustness", draws=draws, method=method, threshold=threshold)]
    return f"{statistics.mean(values):.3f}"


def points(share: str, digits: int, *, sign: bool = True) -> str:
    """A difference of shares in points, with its sign: +3.4, −0.2, 0.0."""
    text = f"{100 * float(share):+.{digits}f}"
    text = text if sign and float(text) else text.lstrip("+-")
    return text.replace("-", "−")


def difference(table: str, digits: int, **equal: str) -> str:
    """A difference in points with its 95 % interval."""
    [row] = rows(table, **equal)
    value, low, high = (points(row[name], digits) for name in ("difference", "low", "high"))
    return f"{value} ({low} to {high})"


def robustness() -> Iterator[Sentence]:
    """Detectors of weak inputs."""
    fresh = " and ".join(mean_f1("fresh", "black_box", threshold) for threshold in ("0.75", "0.5"))
    yield "limits", f"only with truth and score from the same neighbours; {fresh} on fresh ones"
    yield "papers-learned", f"on fresh ones {fresh}"
    yield "papers-robustness", f"kept apart {fresh}"
    white = " and ".join(mean_f1("shared", "white_box_all", threshold) for threshold in ("0.75", "0.5"))
    yield "limits", f"has {white} on average"
    yield "papers-learned", f"on average: {white}"
    best = float(mean_f1("fresh", "together", "0.75"))
    yield "limits", f"At threshold 0.75 the best had a mean F1 of {best:.2f} over nine networks"


def classes() -> Iterator[Sentence]:
    """How much better than chance pairs of classes are ranked."""
    gains = defaultdict(list)
    for row in rows("classes", tap="all outputs"):
        gains[row["data"] == "svhn"].append(float(row["confusion_gain"]))
    low, high = (points(str(end), 0, sign=end < 0) for end in (min(gains[True]), max(gains[True])))
    yield "limits", f"(SVHN, gain of {low} to {high} %)"
    yield "limits", f"it was {min(gains[False]):.0%} to {max(gains[False]):.0%}".replace("%", "", 1).replace("%", " %")


def retraining() -> Iterator[Sentence]:
    """The unsafe set against its baselines: classifiers, their own options, fresh test images."""
    verdicts: dict[str, list[str]] = {}
    gains = []
    for row in rows("causes_retraining", test="fresh test"):
        if row["case"].startswith("faces") or "unit length" in row["case"]:
            continue
        verdicts.setdefault(row["unsafe_set_less"], []).append(row["verdict"])
        if row["unsafe_set_less"] == "before":
            gains.append(row["difference"])
    pairs = list(zip(verdicts["random images"], verdicts["failing images"], strict=True))
    both = f"{pairs.count(('better', 'better'))} of {len(pairs)}"
    yield "limits", f"in {both} comparisons and by up to {points(max(gains, key=float), 1, sign=False)} points"
    yield "papers-learned", f"in {both} cases"
    repeated = verdicts["random images repeated"]
    better, worse, count = repeated.count("better"), repeated.count("worse"), len(repeated)
    yield "limits", f"it was better in {better} of {count} comparisons and worse in {worse}"
    yield "papers-learned", f"against random images that weigh as much, in {better}, and {worse} are worse"


def lesions() -> Iterator[Sentence]:
    """The graph network less its best baseline."""
    ms = {"chosen": "best on test", "learnt_from": "unseen brains"}
    lgg = {"chosen": "best on test", "learnt_from": "all folds"}
    graphs = ("gcn_classification", "gcn_regression")
    sclerosis = [difference("lesions_ms_differences", 1, graph=graph, **ms) for graph in graphs]
    glioma = [difference("lesions_lgg_differences", 2, graph=graph, **lgg) for graph in graphs]
    yield "limits", f"{sclerosis[0]} and {sclerosis[1]} points on implanted lesions of multiple sclerosis"
    yield "limits", f"{glioma[0]} and {glioma[1]} in gliomas"
    yield "papers-learned", f"not shown: {sclerosis[0]} in multiple sclerosis, {glioma[0]} in gliomas"


def sentences() -> Iterator[Sentence]:
    """Every sentence that is held against its page."""
    for topic in (robustness, classes, retraining, lesions):
        yield from topic()


def missing() -> list[Sentence]:
    """The sentences that their page does not hold, whatever its line breaks."""
    pages = {page: " ".join((DOCS / f"{page}.md").read_text(encoding="utf-8").split()) for page, _ in sentences()}
    return [(page, text) for page, text in sentences() if text not in pages[page]]


if __name__ == "__main__":
    for name, sentence in missing():
        print(f"docs/{name}.md lacks: {sentence}")
