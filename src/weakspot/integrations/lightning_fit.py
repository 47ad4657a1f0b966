"""Lightning: examine the module when the fit has ended."""

from typing import Any

from weakspot.integrations.examination import Examination
from weakspot.integrations.needed import needed


def lightning_callback(examination: Examination) -> Any:
    """A callback of Lightning that examines the module at the end of `fit`, on the main process.

    A policy that does not hold raises `GateFailed`, which ends the job with an error. `run` is then the Run.
    """
    lightning = needed("lightning.pytorch", "lightning")

    class Examine(lightning.Callback):  # type: ignore[misc, name-defined]
        """Examines the module when the fit has ended."""

        run: Any = None

        def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
            if trainer.is_global_zero:
                self.run = examination.of(pl_module, device=str(pl_module.device))

    return Examine()
