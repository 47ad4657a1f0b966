"""A model from a file: weights, archives of torch.export, ONNX; and the pre-processing that a few numbers describe."""

from weakspot.models.exported import load_exported
from weakspot.models.onnx_file import OnnxModel
from weakspot.models.preprocessing import Normalise
from weakspot.models.stated import Preparation, stated_preparation
from weakspot.models.weights import load_weights, read_weights

__all__ = [
    "Normalise",
    "OnnxModel",
    "Preparation",
    "load_exported",
    "load_weights",
    "read_weights",
    "stated_preparation",
]
