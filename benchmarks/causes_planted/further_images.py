"""What is done to images in the scenarios that were added later."""

import numpy as np
import torch
from images import SIDE
from torch import Tensor
from torch.nn import functional as F


def _chosen(where: np.ndarray, changed: Tensor, images: Tensor) -> Tensor:
    return torch.where(torch.from_numpy(where)[:, None, None, None], changed, images)


def _sampled(images: Tensor, scale: tuple[float, float], moved: np.ndarray) -> Tensor:
    """Images looked at through a window of this width and height, moved by parts of the side."""
    frame = torch.zeros(len(images), 2, 3)
    frame[:, 0, 0], frame[:, 1, 1] = scale
    frame[:, :, 2] = torch.from_numpy(moved).float() * 2
    grid = F.affine_grid(frame, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


def foggy(images: Tensor, where: np.ndarray) -> Tensor:
    """Fog before some images."""
    return _chosen(where, images * 0.2 + 0.72, images)


def near(images: Tensor, where: np.ndarray) -> Tensor:
    """Some images from half the distance: their middle fills the picture."""
    return _chosen(where, _sampled(images, (0.5, 0.5), np.zeros((len(images), 2))), images)


def moved(images: Tensor, where: np.ndarray, rng: np.random.Generator) -> Tensor:
    """Some images moved by six pixels to any of the four sides."""
    sides = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])[rng.integers(0, 4, len(images))]
    return _chosen(where, _sampled(images, (1.0, 1.0), sides * 6 / SIDE), images)


def shaded(images: Tensor, where: np.ndarray) -> Tensor:
    """A shadow over the lower half of some images."""
    light = torch.ones(SIDE)
    light[SIDE // 2 :] = 0.12
    return _chosen(where, images * light[:, None], images)


def green(images: Tensor, where: np.ndarray) -> Tensor:
    """Some images in green light."""
    return _chosen(where, images * torch.tensor([0.25, 1.0, 0.25])[:, None, None], images)


def squeezed(images: Tensor, where: np.ndarray) -> Tensor:
    """Some images squeezed to half of their width, as signs seen from the side."""
    return _chosen(where, _sampled(images, (2.0, 1.0), np.zeros((len(images), 2))), images)


def streaked(images: Tensor, where: np.ndarray, rng: np.random.Generator) -> Tensor:
    """Bright slanting streaks of one pixel over some images, as of rain."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    place = (columns[None] + rows[None] // 3 + rng.integers(0, 4, (len(images), 1, 1))) % 4
    streaks = torch.from_numpy(place == 0)[:, None].expand_as(images)
    return _chosen(where, torch.where(streaks, torch.tensor(0.9), images), images)


def barred(images: Tensor, where: np.ndarray, rng: np.random.Generator) -> Tensor:
    """A dark pole of five pixels before some images."""
    left = rng.integers(4, 8, (len(images), 1))
    columns = np.arange(SIDE)[None]
    pole = torch.from_numpy((columns >= left) & (columns < left + 5))[:, None, None].expand_as(images)
    return _chosen(where, torch.where(pole, torch.tensor(0.15), images), images)


def dazzled(images: Tensor, where: np.ndarray, rng: np.random.Generator) -> Tensor:
    """A bright spot with soft edges somewhere over the middle of some images."""
    middle = rng.uniform(5, 10, (2, len(images), 1, 1))
    rows, columns = np.mgrid[:SIDE, :SIDE]
    far = (rows[None] - middle[0]) ** 2 + (columns[None] - middle[1]) ** 2
    spot = torch.from_numpy(np.exp(-far / (2 * 3.5**2))).float()[:, None]
    return _chosen(where, (images + 1.3 * spot).clamp(0, 1), images)
