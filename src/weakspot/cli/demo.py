"""What `weakspot demo` examines: an embedded gaze detector on eyes of a simulator, some of kinds that it never saw."""

from weakspot.asking.config import Config
from weakspot.data.eye_net import CLASSES

CONFIG = Config.model_validate(
    {
        "subject": {
            "model": "weakspot.data.eye_net:model",
            "task": "classification",
            "classes": list(CLASSES),
            "scores": "logits",
            "bounds": [0, 1],
        },
        "data": {
            "train": "weakspot.data.eye_net:train",
            "test": "weakspot.data.eye_net:test",
            "pool": "weakspot.data.eye_net:pool",
        },
        "ask": {
            "coverage": {"kmnc": {"sections": 100}},
            "robustness": {"neighbours": {"rotate": 10, "shift": 2}, "looks": 20, "analysis": True},
            "classes": {},
            "causes": {"angles": ["gaze_angle", "light_angle"], "select": {"from": "pool", "budget": 100}},
            "pictures": {},
        },
    }
)
