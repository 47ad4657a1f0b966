"""Tables of docs/papers-causes.md as lines, made of the CSVs beside this script; prose.py writes them."""

import statistics
from collections.abc import Iterator, Sequence

from page_tables import HEAD, Rows, ends, interval, rows, table

CASES = {
    "gaze": ("gaze (GD)", "5371", "16", "1.49 %"),
    "closed eyes": ("closed eyes (OC)", "506", "14", "13.82 %"),
    "glasses": ("glasses (OD)", "838", "14", "8.35 %"),
    "traffic signs": ("traffic signs (TSR)", "2317", "20", "4.31 %"),
    "faces": ("faces (FLD)", "1554", "71", "22.84 %"),
}
"""Name, and the published errors, clusters, and share to look at."""
BUDGETS = {"gaze": (100, 235), "closed eyes": (100, 235), "glasses": (100, 235)}
BUDGETS |= {"traffic signs": (300, 1000), "faces": (100, 300)}
METHODS = ("unsafe set", "random images", "failing images", "random images repeated", "training set alone")
TESTS = "fresh test"
SHARES = ("reduced", "explained", "reduced_at_random")


def cases(case: str, *, unit: bool = False) -> Rows:
    """The nets of a kind."""
    return [row for row in rows("causes_cases") if row["case"].startswith(case) and ("unit" in row["case"]) == unit]


def between(values: Sequence[float], digits: int = 0) -> str:
    """The least and the greatest; one figure where both are written alike."""
    low, high = (f"{end:.{digits}f}" for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def table_1() -> list[str]:
    """How few images to look at."""
    lines = []
    for case, (name, *published) in CASES.items():
        own = cases(case)
        scale, unit = (1, " pixels") if case == "faces" else (100, " %")
        figures = [
            between([scale * float(row[f"{part} figure"]) for row in own], 1).replace("100.0", "100")
            for part in ("train", "test", "fresh test")
        ]
        told = f"{'off by ' if case == 'faces' else ''}{', '.join(figures)}{unit}"
        counts = [between([float(row[each]) for row in own]) for each in ("errors", "clusters")]
        shares = between([100 * float(row["share_to_inspect"]) for row in own], 1)
        images = f"{int(own[0]['test images']):,}"
        lines.append([name, str(len(own)), told, f"{counts[0]} of {images}", counts[1], f"{shares} %", *published])
    head = ["", "nets", "accuracy: training, test, fresh test", "errors", "clusters", "to look at"]
    return table([*head, "published: errors", "clusters", "to look at"], lines)


def causes_shown() -> list[str]:
    """RQ1: clusters in which a parameter varies less, and how far they agree with the planted kinds."""
    lines = []
    for case in CASES:
        own = cases(case)
        shares = (
            [100 * float(row[each].split(" ")[0]) for row in own] for each in ("reduced_clusters", "explained_clusters")
        )
        planted = [float(row["ari_with_planted"]) for row in own if row["ari_with_planted"]]
        told = [f"{between(each)} %" for each in shares]
        lines.append([case, str(len(own)), *told, between(planted, 2) if planted else "–"])
    return table(
        ["", "nets", "some parameter reduced by half", "beyond chance", "agreement with the planted kinds"], lines
    )


CLUSTERED = {
    "raw pixels": "raw pixels, knee",
    "penultimate features": "penultimate features, knee",
    "heat maps, best layer (the last)": "heat maps, best layer, knee",
    "heat maps, as the released code": "heat maps, released code, its k",
    "heat maps, first layer": "heat maps, layer 0, knee",
    "of unit length, best layer (the last)": "heat maps of unit length, best layer, knee",
    "of unit length, last but one": "heat maps of unit length, layer 13, knee",
    "of unit length, first layer": "heat maps of unit length, layer 0, knee",
}


def clustered() -> list[str]:
    """Ten gaze detectors whose errors have known causes."""
    lines = []
    for name, what in CLUSTERED.items():
        own = rows("causes", what=what)
        agreement = [float(row["ari"]) for row in own]
        means = {each: statistics.mean(float(row[each]) for row in own) for each in ("clusters", *SHARES)}
        shares = [f"{100 * means[each]:.0f} %" for each in SHARES]
        spread = f"{statistics.mean(agreement):.2f} ± {statistics.stdev(agreement):.2f}"
        lines.append([name, f"{means['clusters']:.0f}", spread, *shares])
    head = ["clusters of", "number", "adjusted Rand index", "reduced", "beyond chance", "reduced, at random"]
    return table(head, lines)


def fresh(case: str, labels: int, method: str, *, unit: bool = False) -> Rows:
    """One method on the fresh test set, net by net."""
    own = rows("causes_retraining", test=TESTS, asked=str(labels), method=method)
    return [row for row in own if row["case"].startswith(case) and ("unit" in row["case"]) == unit]


def asked() -> Iterator[tuple[str, int]]:
    return ((case, labels) for case, budgets in BUDGETS.items() for labels in budgets)


def named(case: str, labels: int) -> str:
    return f"{case}, {labels:,}" + (" (pixels)" if case == "faces" else "")


def retrained() -> list[str]:
    """RQ2: accuracy in %, mean and standard deviation over the nets."""
    lines = []
    for case, labels in asked():
        scale, digits = (1, 2) if case == "faces" else (100, 1)
        own = [fresh(case, labels, "unsafe set"), *(fresh(case, labels, method) for method in METHODS)]
        cells = []
        for place, found in enumerate(own):
            values = [scale * float(row["after" if place else "before"]) for row in found]
            cells.append(f"{statistics.mean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}")
        lines.append([named(case, labels), str(len(own[0])), *cells])
    head = ["case, labels", "nets", "before", *METHODS[:3], "repeated", METHODS[4]]
    return table(head, lines)


def differences() -> list[str]:
    """The unsafe set less its rivals."""
    lines = []
    for case, labels in asked():
        cells = [difference(fresh(case, labels, method), case) for method in METHODS[1:4]]
        lines.append([named(case, labels), str(len(fresh(case, labels, METHODS[0]))), *cells])
    return table(["case, labels", "nets", "unsafe set less random", "less failing", "less repeated"], lines)


def difference(found: Rows, case: str) -> str:
    """Mean over the nets with Student's interval, and for how many nets it is shown to be better and worse."""
    scale, digits = (1, 2) if case == "faces" else (100, 1)
    values = [scale * float(row["difference"]) for row in found]
    verdicts = [row["verdict"] for row in found]
    return f"{interval(values, digits)}; {verdicts.count('better')}, {verdicts.count('worse')}"


def contents() -> list[str]:
    """Every table and figure of the paper, where ours is, and whether its claim holds."""
    least = ends((100 * float(row["reduced_clusters"].split(" ")[0]) for row in rows("causes_cases")), 0)
    clusters = ends((float(row["clusters"]) for case in CASES for row in cases(case)), 0)
    gains = [
        100 * float(row["difference"])
        for case, labels in asked()
        if case != "faces"
        for row in fresh(case, labels, "unsafe set")
    ]
    glasses = fresh("glasses", 100, "unsafe set")
    means = (statistics.mean(float(row[each]) for row in glasses) for each in ("before", "after"))
    ends_of = " to ".join(f"{100 * each:.0f}" for each in means)
    below = "[below](#rq2-does-root-cause-retraining-beat-its-baselines)"
    seen = "[below](#rq1-do-clusters-show-causes)"
    return table(
        HEAD,
        [
            ("Figures 1 and 3: the method, its parts", "not drawn", "no claim", "–"),
            ("Figure 2: clusters share a cause one can see", seen, "by figures; pictures in the viewer", "**partly**"),
            ("Table 1: few images to look at: 14 to 71 clusters", "[below](#table-1-how-few-images-to-look-at)",
             f"{clusters} clusters, whatever the errors; five of six cases, no head poses", "**yes**"),
            ("RQ1: a parameter varies half as much in 57 to 100 % of the clusters", seen,
             f"{least} %; clusters of pixels reach it as well", "**yes**, and says little"),
            ("RQ2: retraining beats both baselines significantly", below, verdicts(),
             "**for classifiers**, not for landmarks"),
            ("RQ2: by up to 30.24 points; OD from 84 to 97 %", below,
             f"over the model before by up to {max(gains):.1f}; glasses from {ends_of} with 100 labels", "**partly**"),
            ("*not asked there:* is it the choice, or the repetition?", below, repeated(), "**mostly the repetition**"),
        ],
    )  # fmt: skip


def classifier_rows(method: str) -> list[str]:
    """The verdicts over all classifiers' rows."""
    return [row["verdict"] for case, labels in asked() if case != "faces" for row in fresh(case, labels, method)]


def verdicts() -> str:
    both = list(zip(classifier_rows("random images"), classifier_rows("failing images"), strict=True))
    return f"better than both in {both.count(('better', 'better'))} of {len(both)} rows of classifiers"


def repeated() -> str:
    found = classifier_rows("random images repeated")
    told = f"better than random images that weigh as much in {found.count('better')} of {len(found)} rows"
    return f"{told}, worse in {found.count('worse')}"


def unit_length() -> list[str]:
    """Heat maps divided by their length, beside the plain ones of the same nets."""
    lines = []
    for case, labels in asked():
        own = fresh(case, labels, "unsafe set", unit=True)
        if own:
            nets = [row["case"].replace(", unit length", "") for row in own]
            plain = {row["case"]: row for row in fresh(case, labels, "unsafe set")}
            apart = [
                100 * (float(row["after"]) - float(plain[net]["after"])) for row, net in zip(own, nets, strict=True)
            ]
            agreement = [
                statistics.mean(float(row["ari_with_planted"]) for row in found)
                for found in (cases(case, unit=True), [row for row in cases(case) if row["case"] in nets])
            ]
            more = [difference(fresh(case, labels, method, unit=True), case) for method in (METHODS[1], METHODS[3])]
            told = ", ".join(f"{each:.2f}" for each in agreement)
            lines.append([named(case, labels), str(len(own)), told, interval(apart, 1), *more])
    names = ("unsafe set less that of plain heat maps", "less random", "less repeated")
    return table(["case, labels", "nets", "agreement with the planted kinds: unit length, plain", *names], lines)
