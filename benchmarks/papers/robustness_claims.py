"""The table that begins docs/papers-robustness.md, made of the CSVs beside this script; prose.py writes it."""

import statistics

from page_tables import HEAD, ends, mean, rows, table
from robustness_page import CUTOFFS, TABLE_4, text_figure
from robustness_tables import by_seed

Line = tuple[str, str, str, str]


def all_of(start: str, part: str = "") -> list[float]:
    """What the study found of one quantity, by its beginning, over all networks."""
    return [
        float(row["value"])
        for row in rows("robustness_study")
        if row["quantity"].startswith(start) and part in row["net"]
    ]


def pair(draws: str, method: str) -> str:
    """Mean F1 at both cutoffs."""
    found = (by_seed(rows("robustness", draws=draws, method=method, threshold=cutoff), "f1") for cutoff in CUTOFFS)
    return " and ".join(f"{statistics.mean(each):.3f}" for each in found)


def steered(cutoff: str) -> str:
    own = rows("robustness_steering", threshold=cutoff, tolerance="3.0", learns_from="train", method="white_box")
    nets = dict.fromkeys(row["net"] for row in own)
    return f"{statistics.mean(mean([row for row in own if row['net'] == net], 'f1') for net in nets):.3f}"


def right_weak() -> str:
    """Figure 8's number: how many of the frames that are right are weak."""
    own = rows("robustness_steering", threshold="0.75", tolerance="3.0", learns_from="train", method="white_box")
    nets = dict.fromkeys(row["net"] for row in own)
    shares = [100 * mean([row for row in own if row["net"] == net], "right_weak") for net in nets]
    return f"{min(shares):.0f} to {max(shares):.0f} %"


def contents() -> list[str]:
    """Every table and figure of the paper, where ours is, and whether its claim holds."""
    return table(HEAD, [*characteristics(), *detectors(), *steering_and_data()])


def characteristics() -> list[Line]:
    """What weak inputs are like."""
    distances = [*all_of("Cohen's d at 0.5"), *all_of("Cohen's d at 0.75")]
    wide, narrow = all_of("AUROC at 0.75, shared"), all_of("AUROC at 0.5, shared")
    fresh = f"{ends(all_of('AUROC at 0.75, fresh'))} and {ends(all_of('AUROC at 0.5, fresh'))} on fresh neighbours"
    above = f"above 0.97 for {over(wide, 0.97)} of nine, above 0.87 for {over(narrow, 0.87)}"
    rho = "[below](#diversity-table-3-and-figures-6-and-7)"
    places = "[below](#where-weak-inputs-lie-table-2-and-figure-5)"
    enough = all_of("m = 15")
    return [
        ("Figures 1 to 4: an example, words, two sketches", "not drawn", "no claim", "–"),
        ("Table 1: nine networks", "[below](#what-is-found-of-weak-inputs)", "trained anew; VGG at half width", "–"),
        (
            "Table 2, Figure 5: weak inputs lie towards the borders between classes",
            places,
            f"Cohen's d {ends(distances, 1)} (published 0.4 to 2.4), p < 10⁻¹⁵⁰ in all 18 settings",
            "**yes**",
        ),
        (
            "Table 3: the weaker, the more diverse the answers",
            rho,
            f"ρ {ends(all_of('Spearman of accuracy and diversity'))} (published 0.85 to 0.98)",
            "**yes**",
        ),
        (
            "Figure 6: ρ above 0.8 from 15 neighbours on",
            rho,
            f"{ends(enough, 3)} at 15",
            f"**yes**, for {over(enough, 0.8)} of nine",
        ),
        ("Figure 7: AUROC of B above 0.97 at 0.75, above 0.87 at 0.5", rho, f"{above}; {fresh}", "**partly**"),
    ]


def over(values: list[float], limit: float) -> int:
    return sum(value > limit for value in values)


def detectors() -> list[Line]:
    """White and black box."""
    text = " and ".join(text_figure(cutoff).partition(" ")[0] for cutoff in CUTOFFS)
    return [
        (
            "Table 4: W finds weak inputs with a mean F1 of 0.769 and 0.611",
            "[below](#table-4-network-by-network)",
            f"a network *of ours* {pair('shared', 'white_box_all')}; {paper_w()}",
            "**on average**, not by network",
        ),
        (
            "Table 5: weak emphasis trades precision for recall; more than 25 neighbours change little",
            "[below](#table-5)",
            "our threshold is set anew afterwards, so that emphasis changes little",
            "**partly**",
        ),
        (
            "Table 6: B finds them with 0.965 and 0.729",
            "[below](#table-6-network-by-network)",
            f"{pair('shared', 'black_box')} if truth and score share all 50 neighbours, {text} if they share 15, "
            f"{pair('fresh', 'black_box')} if none",
            "**only if they share them**",
        ),
        (
            "a query takes 0.031 ms",
            "[below](#cost-of-a-query)",
            f"{asked('100')} ms in batches of 100, {asked('512')} ms in batches of 512",
            "**yes, in larger batches**",
        ),
    ]


def asked(batch: str) -> str:
    """Milliseconds of a query on CIFAR-10, on the GPU."""
    found = rows("robustness_cost", net="ResN-cifar10", images=batch)
    [row] = [row for row in found if row["machine"].startswith("NVIDIA")]
    return f"{float(row['milliseconds_per_query']):.3f}"


def steering_and_data() -> list[Line]:
    """Table 7 and what follows."""
    changes = [100 * value for value in all_of("accuracy changes")]
    steering = "[below](#steering-table-7-and-figure-8)"
    return [
        (
            "Table 7: W finds weak frames of steering networks, 0.582 and 0.479",
            steering,
            f"{steered('0.75')} and {steered('0.5')} on three networks *of ours*, 640 test frames of one drive",
            "**yes**, on other networks and data",
        ),
        (
            "Figure 8: 45.8 % of the frames that are right are weak",
            steering,
            f"{right_weak()}; no picture, the networks' weights are not kept",
            "**partly**: some are, fewer",
        ),
        (
            "Table 8, Figure 9: training and test data are alike",
            "[below](#training-and-test-data-table-8-and-figure-9)",
            f"Spearman {ends(all_of('Spearman of training'))}",
            "**yes**",
        ),
        (
            "Table 9, Figure 10: robustness belongs to the image, not to the model",
            "[below](#two-models-table-9-and-figure-10)",
            f"{min(changes):.0f} to {max(changes):.0f} % of the images change by less than 0.2 between two models; "
            f"two images taken at random, {random_change()}",
            "**mostly**",
        ),
    ]


def random_change() -> str:
    shares = [100 * value for value in all_of("accuracy differs")]
    return f"{min(shares):.0f} to {max(shares):.0f} %"


def paper_w() -> str:
    """What the paper's own network reached, and on how many it ran."""
    own = rows("robustness_white_box", products="bfloat16")
    told = []
    for place, cutoff in enumerate(CUTOFFS):
        nets = {row["net"] for row in own if row["threshold"] == cutoff}
        if nets:
            told.append(f"{beside_ours(nets, cutoff, place)} at {cutoff} on {len(nets)} of nine")
    return f"the paper's own {' and '.join(told)}" if told else "the paper's own was not run"


def beside_ours(nets: set[str], cutoff: str, place: int) -> str:
    """The paper's own network, ours and the published figure on the same networks."""
    own = [row for row in rows("robustness_white_box", threshold=cutoff, products="bfloat16") if row["net"] in nets]
    every = rows("robustness", draws="shared", method="white_box_all", threshold=cutoff)
    ours = mean([row for row in every if row["net"] in nets], "f1")
    known = statistics.mean(TABLE_4[net][place][0] for net in nets)
    return f"{mean(own, 'f1'):.3f} (ours {ours:.3f}, published {known:.3f})"
