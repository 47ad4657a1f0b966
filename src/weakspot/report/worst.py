"""The worst of what was found, with pictures: a class, a pair, a group, a cause, ordered by the inputs they concern.

Coverage is never among them: what no input reaches is no fault of the model.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from weakspot.core.finding import Finding
from weakspot.report.given import Given
from weakspot.report.shown import ShownPicture, Worst, show_picture
from weakspot.report.wording import counted, label, number, roughly

MOST = 3
_PICTURES = 2
_ROWS = 10_000
_ASIDE = "coverage."


def worst(findings: Sequence[Finding], *, several_labels: bool = False) -> list[Worst]:
    """At most three, one of each kind; `several_labels`: an input may have more than one."""
    givens = [Given(finding) for finding in findings if not finding.name.startswith(_ASIDE)]
    kinds = (_weak_class, _cause, partial(_pair, several_labels=several_labels), _group)
    found = [one for kind in kinds for one in [kind(givens)] if one is not None]
    ordered = sorted(found, key=lambda one: -one.concerns)[:MOST]
    return ordered + list(_further(givens, {one.finding for one in ordered}))[: MOST - len(ordered)]


def _weak_class(givens: Sequence[Given]) -> Worst | None:
    """The class with most weak inputs."""
    held = _first(givens, "table.class", "table.weak_share", "table.weak_low", "table.weak_high", "table.inputs")
    if held is None:
        return _lucky(givens)
    rows = _rows(held)
    row = max(rows, key=lambda row: row["weak_share"])
    told = f"{_interval(row['weak_low'], row['weak_high'])}, {counted(row['inputs'], 'input')}."
    return Worst(
        title=f"Class “{row['class']}”: {roughly(row['weak_share'])} of its inputs are weak",
        told=f"Right at best by luck: small variations are answered wrongly too often. {told}",
        finding=held.finding.name,
        concerns=row["weak_share"] * row["inputs"] / max(sum(other["inputs"] for other in rows), 1),
        pictures=_strips(givens, str(row["class"])),
    )


def _lucky(givens: Sequence[Given]) -> Worst | None:
    """Inputs that are right and yet weak, where no classes are compared."""
    held = next((given for given in givens if {"lucky", "inputs", "weak_share"} <= given.finding.summary.keys()), None)
    count = None if held is None else held.finding.summary["lucky"].value
    total = None if held is None else held.finding.summary["inputs"].value
    if held is None or not isinstance(count, int) or not isinstance(total, int) or not count:
        return None
    return Worst(
        title=f"{counted(count, 'input')} answered rightly by luck",
        told=f"Right as they are, wrong for too many of their small variations: {number(count)} of {number(total)}.",
        finding=held.finding.name,
        concerns=count / total,
        pictures=_strips(givens, None),
    )


def _strips(givens: Sequence[Given], target: str | None) -> list[ShownPicture]:
    """Pictures of weak inputs beside their neighbours; of a class only its own, where the true classes are known."""
    strips = _first(givens, "table.id", "table.answers")
    if strips is None:
        return []
    known = _first(givens, "table.id", "table.weak", "table.target")
    of = {} if known is None else dict(zip(known.words("table.id"), known.words("table.target"), strict=True))
    media = strips.finding.media.items()
    own = [(name, picture) for name, picture in media if not of or target is None or of.get(name) == target]
    return [show_picture(name, picture) for name, picture in own[:_PICTURES]]


def _cause(givens: Sequence[Given]) -> Worst | None:
    """The largest cluster of errors."""
    held = _first(givens, "table.cluster", "table.images", "table.share")
    rows = [] if held is None else _rows(held)
    if held is None or not rows:
        return None
    row = max(rows, key=lambda row: row["images"])
    errors = held.finding.summary["errors"].value if "errors" in held.finding.summary else None
    total = held.finding.provenance.get("samples")
    share = f"{roughly(row['share'])} of the errors"
    share += f" ({_interval(row['low'], row['high'])})" if {"low", "high"} <= row.keys() else ""
    return Worst(
        title=f"{number(row['images'])} errors with one likely cause",
        told=f"Cluster {row['cluster']}, {share}." + (f" Shared: {row['shared']}." if row.get("shared") else ""),
        finding=held.finding.name,
        concerns=row["images"] / total if isinstance(total, int) and total and errors else 0.0,
        pictures=_named(held, f"cluster {row['cluster']}"),
    )


def _pair(givens: Sequence[Given], *, several_labels: bool) -> Worst | None:
    """The pair of classes that is truly mixed up most or, without labels, the nearest, or that leans most."""
    of_pairs = ("table.first", "table.second", "table.confused")
    held = _first(givens, *of_pairs, "table.distance") or _first(givens, *of_pairs, "table.leaning")
    if held is None:
        return None
    rows = _rows(held)
    if not rows:
        return None
    row = max(rows, key=lambda row: max(_taken(row)))  # where labels are missing the first, which is the nearest
    forth, back = _taken(row)
    one, other = str(row["first"]), str(row["second"])
    if back > forth:
        one, other, forth, back = other, one, back, forth
    if forth:
        title, told = (_both_predicted if several_labels else _taken_for)(one, other, forth, back)
        told += "" if row["confused"] else " Only labels show it: the pair is not among those reported."
    else:
        title, told = f"“{one}” and “{other}” look alike to the network", _alike(row)
    pictures = _named(held, f"{one} like {other}", f"{other} like {one}")
    return Worst(title, told, held.finding.name, (forth + back) / max(_classes(held), 1), pictures)


def _taken_for(one: str, other: str, forth: float, back: float) -> tuple[str, str]:
    told = f"{roughly(forth)} of “{one}” are taken for “{other}”, {roughly(back)} of “{other}” for “{one}”."
    return f"“{one}” is taken for “{other}”", told


def _both_predicted(one: str, other: str, forth: float, back: float) -> tuple[str, str]:
    """Of several labels none is taken for another: one is predicted beside the other."""
    told = (
        f"Both are predicted for {roughly(forth)} of the inputs with “{one}” and without “{other}”, and for "
        f"{roughly(back)} of those with “{other}” and without “{one}”."
    )
    return f"“{other}” is predicted beside “{one}”", told


def _alike(row: Mapping[str, Any]) -> str:
    """By what two classes look alike, where no label says so."""
    if "distance" in row:
        return f"They activate the same neurons: distance {number(row['distance'])}, the nearest of all pairs."
    return f"Images predicted as one give {roughly(row['leaning'])} to the other, the most of all pairs."


def _taken(row: Mapping[str, Any]) -> tuple[float, float]:
    forth, back = row.get("first_taken_for_second"), row.get("second_taken_for_first")
    return float(forth or 0), float(back or 0)


def _classes(given: Given) -> int:
    return len(given["classes"]) if given.has("classes") else 0


def _group(givens: Sequence[Given]) -> Worst | None:
    """The largest sure difference between groups."""
    needs = ("better", "worse", "difference", "low", "high", "sure", "images_worse")
    held = _first(givens, *(f"table.{name}" for name in needs))
    rows = [] if held is None else [row for row in _rows(held) if row["sure"]]
    if held is None or not rows:
        return None
    row = max(rows, key=lambda row: row["difference"])
    total = held.finding.provenance.get("samples")
    return Worst(
        title=f"“{row['worse']}” is answered rightly less often than “{row['better']}”",
        told=f"By {roughly(row['difference'])} of the inputs ({_interval(row['low'], row['high'])}).",
        finding=held.finding.name,
        concerns=row["difference"] * row["images_worse"] / total if isinstance(total, int) and total else 0.0,
        pictures=[],
    )


def _further(givens: Sequence[Given], told: set[str]) -> Iterator[Worst]:
    """Pictures of other Findings, where fewer than three kinds were found."""
    shown = {given.finding.name: given.finding for given in givens}
    for name, finding in shown.items():
        if name not in told and finding.media:
            key, picture = next(iter(finding.media.items()))
            yield Worst(label(name), picture.caption or finding.about, name, 0.0, [show_picture(key, picture)])


def _first(givens: Sequence[Given], *names: str) -> Given | None:
    return next((given for given in givens if all(map(given.has, names))), None)


def _rows(given: Given) -> list[dict[str, Any]]:
    """The rows of a table, or the first of a long one: tables have the worst first."""
    return [] if given.finding.table is None else list(given.finding.table.slice(0, _ROWS).to_pylist())


def _named(given: Given, *names: str) -> list[ShownPicture]:
    media = given.finding.media
    return [show_picture(name, media[name]) for name in names if name in media]


def _interval(low: float, high: float) -> str:
    return f"95\u00a0% interval {roughly(low)} to {roughly(high)}"
