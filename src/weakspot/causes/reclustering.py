"""Cluster again from a saved Run: other settings, no model."""

from dataclasses import asdict, replace
from typing import Any

from weakspot.causes.analysis import ErrorImages, study_root_causes
from weakspot.causes.clusters import ClusterRecipe
from weakspot.causes.finding_parts import finding_parts
from weakspot.core.finding import Finding, table_of
from weakspot.core.run import Run

NAME = "causes.root_causes"


def recluster(
    source: Finding | Run,
    recipe: ClusterRecipe | None = None,
    *,
    layer: str | None = None,
    replicates: int = 50,
    stable: float = 0.6,
    pictures: int = 12,
    seed: int = 0,
) -> Finding:
    """The root causes of a Run, or of its Finding of `RootCauses`, clustered in another way.

    The new Finding is whole in itself: it holds the same distances, heat maps and small pictures, says in its
    provenance from which it was made, and can be saved in the old one's place with `run.save`. Options as in
    `RootCauses`.
    """
    finding = source[NAME] if isinstance(source, Run) else source
    images = ErrorImages.of_finding(finding)
    study = study_root_causes(images, recipe, layer=layer, replicates=replicates, seed=seed)
    parts = finding_parts(images, study, stable=stable, pictures=pictures, seed=seed)
    options: dict[str, Any] = {"layer": layer, "replicates": replicates, "stable": stable, "seed": seed}
    said = {"from": finding.digest, **asdict(recipe or ClusterRecipe()), **options}
    kept = {name: one for name, one in finding.summary.items() if name == "agreement_near_chance"}
    parts["summary"] = {**parts["summary"], **kept}
    return replace(
        finding,
        **{**parts, "table": table_of(parts["table"])},
        provenance={**finding.provenance, "reclustered": said},
    )
