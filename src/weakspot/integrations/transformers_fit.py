"""Hugging Face: examine the model when the training has ended."""

from typing import Any

from weakspot.integrations.examination import Examination
from weakspot.integrations.needed import needed


def trainer_callback(examination: Examination) -> Any:
    """A callback of `transformers.Trainer` that examines the model at the end of the training, on the main process.

    A policy that does not hold raises `GateFailed`, which ends the job with an error. `run` is then the Run. Names of
    classes are the model's own (`id2label`), unless the examination says otherwise; outputs are the logits.
    """
    transformers = needed("transformers", "transformers")

    class Examine(transformers.TrainerCallback):  # type: ignore[misc, name-defined]
        """Examines the model when the training has ended."""

        run: Any = None

        def on_train_end(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
            if state.is_world_process_zero:
                self.run = examination.of(model, **_of_model(model))

    return Examine()


def _of_model(model: Any) -> dict[str, Any]:
    """What the model's configuration says of its outputs."""
    names = getattr(model.config, "id2label", None) or {}
    classes = {"classes": [names[number] for number in sorted(names)]} if names else {}
    return {"output": "logits", "scores": "logits", "device": str(model.device), **classes}
