"""What `weakspot demo` examines: an embedded net on embedded digits."""

from weakspot.cli.config import Config

CONFIG = Config.model_validate(
    {
        "subject": {
            "model": "weakspot.data.digits:model",
            "task": "classification",
            "classes": list("0123456789"),
            "scores": "logits",
            "bounds": [0, 1],
        },
        "data": {"train": "weakspot.data.digits:train", "test": "weakspot.data.digits:test"},
        "ask": {
            "coverage": {"kmnc": {"sections": 100}},
            "robustness": {"neighbours": {"rotate": 20, "shift": 1}},
            "classes": {},
        },
    }
)
