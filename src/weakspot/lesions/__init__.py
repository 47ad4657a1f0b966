"""Which detected lesions are real? After Lambert et al. 2022 (`lambert2022`).

Names are loaded when they are first used: what the room declares is read without torch.
"""

from typing import TYPE_CHECKING

from weakspot.lazy import lazy_names

if TYPE_CHECKING:
    from weakspot.lesions.probes import LesionFit, Lesions, Scores
    from weakspot.lesions.volume_probes import CaseVolumes

__all__ = [
    "CaseVolumes",
    "LesionFit",
    "Lesions",
    "Scores",
]

__getattr__, __dir__ = lazy_names(
    "weakspot.lesions",
    {
        "probes": "LesionFit Lesions Scores",
        "volume_probes": "CaseVolumes",
    },
)
