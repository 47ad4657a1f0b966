"""Tables and sentences of the documentation with the numbers that the CSVs beside this script give: `python prose.py`.

It writes the tables between their marks, `<!-- written by MODULE:FUNCTION -->` and `<!-- end -->`, where FUNCTION of a
MODULE beside this script gives the lines; and it prints the sentences that a page does not hold. A test does the same,
so that a page cannot drift from what was measured.
"""

import re
import statistics
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import classes_page
import importance_claims
import lesions_page
from page_tables import interval, points, rows
from robustness_page import CUTOFFS, KINDS, TABLE_4

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs"
BLOCK = re.compile(r"(<!-- written by (\w+):(\w+) -->\n\n).*?(\n<!-- end -->)", re.DOTALL)
Sentence = tuple[str, str]  # page, text


def mean_f1(draws: str, method: str, threshold: str) -> str:
    """Mean F1 over nine networks and their seeds."""
    values = [float(row["f1"]) for row in rows("robustness", draws=draws, method=method, threshold=threshold)]
    return f"{statistics.mean(values):.3f}"


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
    yield "papers-robustness", svhn_apart()
    yield "papers-robustness", full_data_apart()
    white = " and ".join(mean_f1("shared", "white_box_all", threshold) for threshold in ("0.75", "0.5"))
    yield "limits", f"has {white} on average"
    yield "papers-learned", f"for a network of ours: {white}"
    yield "limits", own_w()
    yield "papers-robustness", own_w()
    yield "papers-learned", own_w()
    best = float(mean_f1("fresh", "together", "0.75"))
    yield "limits", f"At threshold 0.75 the best had a mean F1 of {best:.2f} over nine networks"


def apart(net: str) -> list[float]:
    """The white box of ours less the published one, F1 at both cutoffs."""
    ours = [rows("robustness", draws="shared", method="white_box_all", net=net, threshold=cutoff) for cutoff in CUTOFFS]
    found = [statistics.mean(float(row["f1"]) for row in each) for each in ours]
    return [one - known[0] for one, known in zip(found, TABLE_4[net], strict=True)]


def own_w() -> str:
    """The paper's own white box where it was run."""
    own = rows("robustness_white_box", products="bfloat16")
    ours, known = [], []
    for row in own:
        every = rows("robustness", draws="shared", method="white_box_all", net=row["net"], threshold=row["threshold"])
        ours.append(statistics.mean(float(each["f1"]) for each in every))
        known.append(TABLE_4[row["net"]][CUTOFFS.index(row["threshold"])][0])
    means = (statistics.mean(each) for each in ([float(row["f1"]) for row in own], ours, known))
    first, second, third = (f"{mean:.2f}" for mean in means)
    return (
        f"the paper's own, run in {len(own)} of 18 cases, has {first} where ours has {second} and the published {third}"
    )


def svhn_apart() -> str:
    """Where few images were at hand."""
    words = []
    for kind in ("ResN", "WideResN", "Vgg16Half"):
        told = (f"{abs(value):.2f} {'better' if value > 0 else 'worse'}" for value in apart(f"{kind}-svhn"))
        words.append(f"{' and '.join(told)} on {KINDS[kind]}")
    return f"ours is {', '.join(words)}"


def full_data_apart() -> str:
    """Where all images were at hand."""
    every = [value for net in TABLE_4 if not net.endswith("svhn") for value in apart(net)]
    better, worse = [value for value in every if value > 0], [-value for value in every if value < 0]
    told = f"{len(better)} of {len(every)} are better, by up to {max(better):.2f}"
    return f"{told}, and {len(worse)} worse, by up to {max(worse):.2f}"


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


def secondary() -> Iterator[Sentence]:
    """What the lesion models say that learnt from fewer lesions, or in brains that the network has seen."""
    [row] = rows("lesions_ms_claims", claim="classification beats regression", learnt_from="seen brains")
    told = lesions_page.apart(row, 1)
    yield "papers-lesions", f"classification is worse than regression in multiple sclerosis, {told}"


def coincidence() -> Iterator[Sentence]:
    """RQ1c of DeepInspect."""
    [row] = [row for row in rows("classes_oracles") if "RQ1c" in row["errors"]]
    yield "limits", f"by {float(row['correlation']):.2f} over the released labels".replace("-", "−")


def importance() -> Iterator[Sentence]:
    """Counts on the page of what was learnt."""
    more, _, cases = importance_claims.counted("DI", "S", importance_claims.CLASSIFIERS, seeds=True)
    yield "papers-learned", f"stands for classifiers ({more} of {cases} cases)"


def weak_shares() -> Iterator[Sentence]:
    """How many test images are weak, and how often both together win."""
    shares = {
        draws: " and ".join(
            f"{100 * statistics.mean(float(row['weak_share']) for row in found):.0f}"
            for found in (rows("robustness", draws=draws, method="black_box", threshold=cutoff) for cutoff in CUTOFFS)
        )
        for draws in ("shared", "fresh")
    }
    told = f"{shares['shared']} % of the test images are weak ({shares['fresh']} % by the fresh neighbours alone)"
    yield "papers-robustness", told
    keys = ("net", "threshold", "seed")
    f1 = {(row["method"], *(row[key] for key in keys)): float(row["f1"]) for row in rows("robustness", draws="fresh")}
    own = [key[1:] for key in f1 if key[0] == "together"]
    wins = sum(f1["together", *key] > max(f1["black_box", *key], f1["white_box_all", *key]) for key in own)
    yield "papers-robustness", f"every network, threshold and seed ({wins} of {len(own)})"
    wins = sum(f1["together", *key] > f1["queries", *key] for key in own)
    yield "papers-robustness", f"above the network on the answers alone in {wins}"


def learnt() -> Iterator[Sentence]:
    """What the page of what was learnt says of bias, of the graph, and of few test images."""
    gains = [100 * float(row["bias_gain"]) for row in rows("classes", tap="all outputs")]
    yield "papers-learned", f"gains go from {min(gains):.0f} to {max(gains):.0f} %".replace("-", "−")
    edges = difference("lesions_ms_differences", 1, graph="gcn_classification", chosen="no_edges")
    yield "papers-learned", f"not shown: {edges} to the same network without edges"
    few, many = (
        sum(
            row["verdict"] == "better"
            for row in rows("causes_retraining", test=test, method="random images")
            if gaze(row)
        )
        for test in ("test", "fresh test")
    )
    yield "papers-learned", f"in {few} of 10 cases by 600 test images, in {many} of 10 by 3,000"


def gaze(row: dict[str, str]) -> bool:
    return row["case"].startswith("gaze") and "unit" not in row["case"]


def repair() -> Iterator[Sentence]:
    """What labelling images of confusing pairs brings over as many random ones."""
    own = {
        method: rows("classes_repair", method=method)
        for method in ("confusing pairs", "random images", "least confident")
    }
    wrong = {method: 100 * statistics.mean(float(row["wrong_among_labelled"]) for row in own[method]) for method in own}
    yield (
        "papers-classes",
        f"{wrong['confusing pairs']:.0f} % of them are errors, of random images {wrong['random images']:.0f} %",
    )
    apart = {
        method: [
            100 * (float(a["after"]) - float(b["after"]))
            for a, b in zip(own[method], own["random images"], strict=True)
        ]
        for method in ("confusing pairs", "least confident")
    }
    told = f"by {interval(apart['confusing pairs'], 2)} points"
    yield "papers-classes", told
    yield (
        "papers-classes",
        f"as much, {interval(apart['least confident'], 2)}, with {wrong['least confident']:.0f} % errors",
    )


def levels() -> Iterator[Sentence]:
    """Importance-driven coverage of LeNet-5 with and without classes, and the report on COCO."""
    found = rows("importance", network="LeNet-5", set="original", criterion="IDC", layers="subject", neurons="6")
    by = {row["classes"]: float(row["coverage"]) for row in found}
    yield "limits", f"falls from {by['together']:.1f} to {by['apart']:.1f} %"
    [row] = rows("classes_oracles", data="coco", errors="confusion", score="distance")
    true, wrong = (int(each) for each in row["found"].partition(",")[0].split(" / "))
    yield "limits", f"In the published report on COCO {true} of {true + wrong} pairs are truly confused"


def robust() -> Iterator[Sentence]:
    """Accuracies of the robust nets beside the published ones, 69 and 73 %."""
    small, large = (
        statistics.mean(100 * float(row["figure"]) for row in classes_page.trained(f"robust {size}"))
        for size in ("small", "large")
    )
    yield "papers-classes", f"when small ({small:.0f} against 69 %), more when large ({large:.0f} against 73 %)"


def sentences() -> Iterator[Sentence]:
    """Every sentence that is held against its page."""
    for topic in (
        robustness,
        classes,
        retraining,
        lesions,
        secondary,
        coincidence,
        importance,
        robust,
        weak_shares,
        learnt,
        levels,
    ):
        yield from topic()


def missing() -> list[Sentence]:
    """The sentences that their page does not hold, whatever its line breaks."""
    pages = {page: " ".join((DOCS / f"{page}.md").read_text(encoding="utf-8").split()) for page, _ in sentences()}
    return [(page, text) for page, text in sentences() if text not in pages[page]]


def written(page: str) -> str:
    """A page's text with its tables as the CSVs give them."""

    def table(block: re.Match[str]) -> str:
        lines = getattr(import_module(block[2]), block[3])()
        return f"{block[1]}{chr(10).join(lines)}\n{block[4]}"

    return BLOCK.sub(table, page)


def outdated() -> dict[Path, str]:
    """The pages whose tables are not those of the CSVs, with the text they should have."""
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
    return {path: new for path, text in pages.items() if (new := written(text)) != text}


if __name__ == "__main__":
    for path, text in outdated().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote the tables of docs/{path.name}")
    for name, sentence in missing():
        print(f"docs/{name}.md lacks: {sentence}")
