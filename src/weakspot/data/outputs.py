"""What the Findings about the data hold: torch-free declarations."""

from collections.abc import Mapping

from weakspot.core.outputs import ArraySpec, Outputs, count, sample_id

PICTURES = Outputs(
    summary={"inputs": count("samples examined")},
    columns={"id": sample_id()},
    arrays={
        "pixels": ArraySpec("a small picture of each sample", ("samples", "height", "width", "channels"), optional=True)
    },
)

FINDINGS: Mapping[str, Outputs] = {"data.pictures": PICTURES}
