"""The table that begins docs/papers-importance.md, made of the CSVs beside this script; prose.py writes it."""

import statistics
from collections.abc import Sequence
from pathlib import Path

from importance_tables import NETS, OTHERS, TABLE_4, TABLE_4_COLUMNS, key_of, paired, read
from page_tables import HEAD, rows, table

Line = tuple[str, str, str, str]
CLASSIFIERS = NETS[:4]
SETTINGS = [(f"IDC {m}", classes) for classes in ("apart", "together") for m in (6, 8, 10, 12)]
ATTACKS = ("fgsm", "bim", "jsma", "carlini_wagner")


def counted(first: str, second: str, nets: Sequence[str] = NETS, *, seeds: bool = False) -> tuple[int, int, int]:
    """In how many cases the first set covers more and less, of how many: by network and setting, and by seed if asked.

    Without seeds the first draw counts; where a set was drawn once, it stands beside every draw of the other.
    """
    found = read(Path(__file__).parent)
    pairs = []
    for net in nets:
        for criterion, classes in SETTINGS:
            one, other = (found.get(key_of(net, name, criterion, classes), {}) for name in (first, second))
            draws = sorted(other) if seeds else [0]
            pairs += [(one.get(seed, one[0]), other[seed]) for seed in draws if one and seed in other]
    return sum(a > b for a, b in pairs), sum(a < b for a, b in pairs), len(pairs)


def attacked(second: str) -> str:
    """How often an attacked set covers more, first draws."""
    found = [counted(attack, second, CLASSIFIERS) for attack in ATTACKS]
    return f"{sum(each[0] for each in found)} of {sum(each[2] for each in found)}"


def moved(pixels: str = "relevant", less: str = "random") -> str:
    """How much further important neurons move than others."""
    found = []
    for net in NETS:
        own = [rows("importance_neurons", network=net, pixels=pixels, neurons=name) for name in ("important", less)]
        one, other = (statistics.mean(float(row["mean"]) for row in each) for each in own)
        found.append(one / other)
    return f"{min(found):.1f} to {max(found):.1f}"


def others() -> str:
    """For how many classifiers all draws of a criterion, over all layers, rise more for random or relevant pixels."""
    found = read(Path(__file__).parent)
    told = []
    for name in OTHERS[:5]:
        values = [paired(found, net, name, "", "all") for net in CLASSIFIERS]
        signs = [(min(own) > 0) - (max(own) < 0) for own in values]
        told.append(f"{name} {signs.count(-1)}, {signs.count(1)}")
    return "; ".join(told)


def near() -> str:
    """How many figures of U_O on the LeNets lie within 5 points of the published Table 4."""
    found = read(Path(__file__).parent)
    apart = [
        abs(found[key_of(net, "original", name, "apart")][0] - known)
        for net in NETS[:3]
        for name, known in zip(TABLE_4_COLUMNS, TABLE_4[net]["original"], strict=True)
        if not name.startswith("IDC")
    ]
    return f"{sum(points <= 5 for points in apart)} of {len(apart)}"


def contents() -> list[str]:
    """Every table and figure of the paper, where ours is, and whether its claim holds."""
    return table(HEAD, [*neurons_and_noise(), *attacks_and_layers()])


def neurons_and_noise() -> list[Line]:
    """Questions 1 and 2."""
    more, less, cases = counted("DI", "S", CLASSIFIERS, seeds=True)
    steered = counted("DI", "S", NETS[4:], seeds=True)
    neurons, noise = (
        "[below](#table-2-figures-3-and-4-important-neurons)",
        "[below](#table-3-noise-on-random-and-on-relevant-pixels)",
    )
    return [
        ("Figures 1 and 2: a network, the method", "not drawn", "no claim", "–"),
        ("Table 1: five networks", "[below](#table-1-networks)", "LeNets the released ones, two trained anew", "–"),
        ("Figure 3: relevance is not activation", neurons, "a digit with ten neurons", "**yes**"),
        (
            "Table 2, Figure 4: important neurons move more than random ones",
            neurons,
            f"{moved()} times as far (published 2.4 to 4.5); the most active neurons move as far or farther",
            "**yes**, but",
        ),
        (
            "Table 3: noise on relevant pixels adds more coverage than on random ones, everywhere",
            noise,
            f"classifiers: more in {more} of {cases} cases, less in {less}; steering net: {steered[0]} and "
            f"{steered[1]} of {steered[2]}, by less than their spread",
            "**for classifiers**",
        ),
        (
            "Table 3: other criteria rise more for random pixels",
            noise,
            f"of four classifiers so many rise more in all five draws for random, for relevant pixels: {others()}",
            "**k-multisection only**",
        ),
        ("Table 3: levels", noise, "not the published ones; the classes are left open", "**no**"),
        ("Figure 5: a frame with noise", noise, "drawn", "–"),
    ]


def attacks_and_layers() -> list[Line]:
    """Questions 3 to 5."""
    first, every = counted("T", "DI"), counted("T", "DI", seeds=True)
    attacks = "[below](#table-4-attacked-sets)"
    return [
        (
            "Table 4: attacked sets cover more than noisy ones",
            attacks,
            f"first draws: more than noise on 2 % of the pixels in {attacked('S')} cases, than noise everywhere in "
            f"{attacked('noise')}",
            "**mostly**",
        ),
        (
            "Table 4: levels of the rivals on U_O",
            attacks,
            f"{near()} figures within 5 points on the LeNets, read after the activation",
            "**mostly**, but for NC",
        ),
        (
            "question 4: all criteria go together",
            "[below](#question-4-do-the-criteria-agree)",
            "ρ above 0, over six sets each",
            "**mostly**",
        ),
        (
            "Table 5: deeper layers, more change",
            "[below](#table-5-layers)",
            "what relevant pixels add over random ones rises on LeNet-4 and -5; the levels do not",
            "**partly**",
        ),
        (
            "*not asked there:* do further training images add less than noise on relevant pixels?",
            noise_link(),
            f"they add more in {first[0]} of {first[2]} cases by the first draw, in {every[0]} of {every[2]} by five "
            "draws of the noise, beside one of the images",
            "**they add more**",
        ),
    ]


def noise_link() -> str:
    return "[below](#table-3-noise-on-random-and-on-relevant-pixels)"
