"""Whether relevance can be trusted: it neither grows without bounds on its way back, nor is it nearly all absorbed."""

from collections.abc import Iterable

import torch
from torch import Tensor

from weakspot.core.finding import Estimate, Finding

ABSORBED, DIVERGED = 0.1, 100.0
"""Relevance counts as absorbed below this share of what it began with, and as diverging above this multiple."""
_WORTH_SAYING = 0.1


def unsound_samples(maps: Iterable[Tensor], start: Tensor) -> Tensor:
    """How many samples are explained, of how many relevance is absorbed, and of how many it diverges; int64 (3,).

    Absorbed: Σ|R| of the first layer is less than a tenth of |start|. Diverging: that of some layer is more than a
    hundred times as large, or no number. Samples that begin with no relevance do not count.

    maps: relevance of layers (samples, …), the one nearest to the inputs first.
    start: what each sample began with (samples,).

    >>> maps = [torch.tensor([[0.4, 0.5], [0.01, 0.0], [0.5, 0.5]]), torch.tensor([[1.0], [1.0], [-500.0]])]
    >>> unsound_samples(maps, torch.ones(3)).tolist()
    [3, 1, 1]
    """
    begun = start.double().abs()
    sizes = torch.stack([values.flatten(1).abs().sum(1, dtype=torch.float64) for values in maps])
    explained = begun > 0
    absorbed = explained & (sizes[0] < ABSORBED * begun)
    diverged = explained & ~(sizes.amax(0) <= DIVERGED * begun)
    return torch.stack([explained, absorbed, diverged]).sum(1)


def relevance_problem(counts: Iterable[int], instead: str) -> str | None:
    """What is wrong with the relevance of at least a tenth of the samples, and what to use instead; None if nothing.

    counts: as `unsound_samples` gives them.

    >>> relevance_problem([100, 0, 62], "method: gradient")
    'the relevance of 62 % of the inputs diverges to over 100 times what it began with: use method: gradient'
    """
    explained, absorbed, diverged = (int(count) for count in counts)
    least, said = max(_WORTH_SAYING * explained, 1), []
    if diverged >= least:
        percent = f"{100 * diverged / explained:.0f} %"
        said.append(f"the relevance of {percent} of the inputs diverges to over {DIVERGED:g} times what it began with")
    if absorbed >= least:
        percent = f"{100 * absorbed / explained:.0f} %"
        said.append(f"less than a tenth of the relevance of {percent} of the inputs reaches the first layer asked for")
    return f"{'; '.join(said)}: use {instead}" if said else None


def problem_of(counts: Tensor) -> dict[str, Estimate]:
    """The entry of a summary that says what is wrong, where something is; counts are a probe's sum of them."""
    if counts.numel() != 3:  # nothing was explained by a method that conserves relevance
        return {}
    problem = relevance_problem(counts.tolist(), "method: epsilon_plus_redistributed, or gradient")
    return {} if problem is None else {"relevance_problem": Estimate(problem)}


def problem_in(finding: Finding) -> dict[str, Estimate]:
    """The same entry of a Finding that others are built on."""
    return {name: entry for name, entry in finding.summary.items() if name == "relevance_problem"}
