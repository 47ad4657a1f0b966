"""A small picture of every input, so that a Run can be looked through without its data."""

from collections.abc import Mapping
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.step import Step
from weakspot.data.outputs import PICTURES
from weakspot.data.thumbnails import thumbnails


class Pictures(Probe):
    """A small picture of every input, for whatever shows some of them: the viewer, the holes of a coverage.

    Serves the holes of importance-driven coverage (Gerasimou et al. 2020), too. Inputs that are no images, such as
    volumes, have none.

    size: of the longer side in pixels; images that are no larger stay as they are; 0 for none.
    """

    outputs = PICTURES

    size: int = 64

    kept = Rows()

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ConfigError(f"size is {self.size}: expected pixels, as 64, or 0 for no pictures")

    def observe(self, seen: Observation) -> None:
        """Keep the pictures."""
        shown = self.size > 0 and seen.inputs.ndim == 4
        self.kept.append(seen.ids, **({"pixels": thumbnails(seen.inputs, self.size)} if shown else {}))

    def finish(self) -> Finding:
        """The pictures as one array (inputs, height, width, 3), uint8, in the order of the data."""
        rows = self.kept.read()
        arrays = {"pixels": rows["pixels"]} if "pixels" in rows else {}
        summary = {"inputs": Estimate(rows.count, about="samples examined")}
        return self.finding(summary=summary, table={"id": rows.ids}, arrays=arrays)


def steps(options: Mapping[str, Any]) -> list[Step]:
    """Pictures of some splits.

    splits: which, by default the test data. All other options are those of `Pictures`.

    >>> [(step.probe.__name__, step.split) for step in steps({"splits": ["test", "pool"]})]
    [('Pictures', 'test'), ('Pictures', 'pool')]
    """
    remaining = dict(options)
    splits = remaining.pop("splits", [Pictures.split])
    if not isinstance(splits, list | tuple) or not splits:
        raise ConfigError(f"splits is {splits!r}: expected a list of splits, as [test, pool]")
    return [Step.of(Pictures, split=split, **remaining) for split in splits]
