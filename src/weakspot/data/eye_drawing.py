"""Drawing an eye from numbers: every pixel of a batch at once, from the skin inwards to the pupil, then the camera.

Places are measured in half widths of the eye, x to the right and y downwards, from the eye's centre. `Parameters` are
tensors of shape (samples, 1, 1), so that they broadcast against the plane (height, width).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

Parameters = Mapping[str, Tensor]

_HALF_WIDTH = 1.7
"""How much of the face an image shows to each side of the eye's centre."""
_EYEBALL = 1.05
_SKINS = torch.tensor([[0.96, 0.80, 0.69], [0.78, 0.57, 0.44], [0.36, 0.24, 0.18]])
_IRISES = torch.tensor([[0.36, 0.22, 0.12], [0.40, 0.44, 0.24], [0.34, 0.50, 0.66]])
_BLUR_REACH = 5
_BLOCK = 16
"""Images drawn at once: few enough to stay in the processor's cache."""


@dataclass(frozen=True)
class _Plane:
    """The places of all pixels, turned with the camera, and the size of a pixel."""

    x: Tensor
    y: Tensor
    pixel: float

    def edge(self, distance: Tensor) -> Tensor:
        """1 inside (positive distances), 0 outside, and a smooth step one pixel wide between them."""
        return (distance / self.pixel + 0.5).clamp(0, 1)


def draw_eyes(parameters: Parameters, size: tuple[int, int], noise: Tensor) -> Tensor:
    """Images of eyes, float32 in [0, 1], shape (samples, 3, height, width).

    noise: uniform in [0, 1), shape (samples, height, width).
    """
    blocks = torch.arange(len(noise)).split(_BLOCK)
    return torch.cat(
        [_draw({name: values[rows] for name, values in parameters.items()}, size, noise[rows]) for rows in blocks]
    )


def _draw(parameters: Parameters, size: tuple[int, int], noise: Tensor) -> Tensor:
    plane = _plane(parameters["roll"], size)
    upper, lower = _lids(parameters["opening"], plane)
    image = _face(parameters, plane, upper, noise)
    visible = plane.edge(torch.minimum(plane.y - upper, lower - plane.y)) * (plane.x.abs() < 1)
    image = _mix(image, _eyeball(parameters, plane, upper), visible)
    image = _mix(image, 0.35 * image, _lashes(plane, upper, noise))
    image = _with_glasses(image, parameters, plane)
    return _seen_by_camera(image, parameters, plane, noise)


def _plane(roll: Tensor, size: tuple[int, int]) -> _Plane:
    height, width = size
    pixel = 2 * _HALF_WIDTH / width
    x = (torch.arange(width) - (width - 1) / 2) * pixel
    y = ((torch.arange(height) - (height - 1) / 2) * pixel)[:, None]
    cos, sin = torch.cos(torch.deg2rad(roll)), torch.sin(torch.deg2rad(roll))
    return _Plane(cos * x + sin * y, cos * y - sin * x, pixel)


def _lids(opening: Tensor, plane: _Plane) -> tuple[Tensor, Tensor]:
    """The height of the upper and lower lid at every x; where they cross, the eye is closed or has ended."""
    arc = (1 - plane.x**2).clamp(min=0)
    lower = (0.16 + 0.16 * opening) * arc + 0.06 * plane.x
    return lower - 0.78 * opening * arc**0.8 - 0.02, lower


def _face(parameters: Parameters, plane: _Plane, upper: Tensor, noise: Tensor) -> Tensor:
    """Skin with a fold above the upper lid, a shadow towards the nose, and a brow."""
    colour = _between(_SKINS, parameters["skin"])
    soft = _smooth(noise)
    fold = torch.exp(-(((plane.y - upper + 0.16) / 0.05) ** 2)) * (plane.x.abs() < 1.05)
    shade = 1 + 0.5 * (soft - 0.5) - 0.22 * fold - 0.12 * torch.sigmoid(4 * (-plane.x - 1.1))
    brow = -0.78 - 0.14 * parameters["opening"] + 0.16 * (plane.x - 0.2) ** 2
    hair = plane.edge(0.11 - (plane.y - brow).abs()) * (plane.x.abs() < 1.35) * (0.75 + 0.5 * (noise - 0.5))
    return _mix(colour * shade[:, None], 0.3 * colour.expand(-1, 3, *shade.shape[1:]), hair)


def _smooth(noise: Tensor) -> Tensor:
    """The mean over nine by nine pixels."""
    wide = F.avg_pool2d(F.pad(noise[:, None], (4, 4, 4, 4), mode="reflect"), (1, 9), 1)
    return F.avg_pool2d(wide, (9, 1), 1)[:, 0]


def _eyeball(parameters: Parameters, plane: _Plane, upper: Tensor) -> Tensor:
    """White, iris, pupil and the light's reflection, under the shadow of the upper lid."""
    angle, strength = torch.deg2rad(parameters["gaze_angle"]), torch.deg2rad(parameters["gaze_strength"])
    reach = _EYEBALL * torch.sin(strength)
    along_x, along_y = torch.cos(angle), -torch.sin(angle)
    dx, dy = plane.x - reach * along_x, plane.y - 0.7 * reach * along_y  # the lids follow the gaze up and down
    along, across = dx * along_x + dy * along_y, dy * along_x - dx * along_y
    from_centre = torch.hypot(along / torch.cos(strength), across)  # a disc on a ball, seen from the side
    iris, pupil = parameters["iris"], parameters["iris"] * parameters["pupil"]
    white = torch.tensor([0.93, 0.91, 0.90])[:, None, None] * (1 - 0.22 * plane.x.abs() ** 2)[:, None]
    rays = 1 + 0.22 * torch.sin(17 * torch.atan2(across, along)) * (from_centre / iris)
    rim = 1 - 0.5 * torch.exp(-(((from_centre - iris) / 0.035) ** 2))
    ball = _mix(
        white, _between(_IRISES, parameters["iris_colour"]) * (rays * rim)[:, None], plane.edge(iris - from_centre)
    )
    ball = _mix(ball, torch.full_like(ball, 0.03), plane.edge(pupil - from_centre))
    towards = torch.deg2rad(parameters["light_angle"])
    glint = torch.hypot(dx - 0.4 * iris * torch.cos(towards), dy + 0.4 * iris * torch.sin(towards))
    ball = _mix(ball, torch.ones_like(ball), 0.9 * plane.edge(0.06 - glint))
    return ball * (1 - 0.45 * torch.exp(-((plane.y - upper).clamp(min=0) / 0.12)))[:, None]


def _lashes(plane: _Plane, upper: Tensor, noise: Tensor) -> Tensor:
    """How much of each pixel is covered by the lashes of the upper lid."""
    strands = 0.5 + 0.5 * torch.sin(40 * plane.x + 6 * plane.x**3)
    line = plane.edge(0.045 - (plane.y - upper).abs())
    tips = plane.edge(0.12 - (plane.y - upper + 0.09).abs()) * strands * (plane.x > -0.75)
    return torch.maximum(line, 0.8 * tips) * (plane.x.abs() < 1.0) * (0.8 + 0.2 * noise)


def _with_glasses(image: Tensor, parameters: Parameters, plane: _Plane) -> Tensor:
    """A rim around a rounded lens, the lens's tint, and a streak of reflected light."""
    wears = parameters["glasses"]
    outside = torch.hypot((plane.x.abs() - 1.0).clamp(min=0), (plane.y.abs() - 0.42).clamp(min=0)) - 0.34
    rim = plane.edge(0.075 - outside.abs()) * wears
    bridge = plane.edge(0.05 - (plane.y + 0.15).abs()) * (plane.x < -1.3) * (outside > 0) * wears
    lens = plane.edge(-outside) * wears
    streak = torch.exp(-(((plane.x + 0.9 * plane.y + 0.25) / 0.28) ** 2)) * parameters["reflection"]
    image = image * (1 - 0.06 * lens)[:, None]
    image = _mix(image, torch.ones_like(image), 0.9 * lens * streak)
    return _mix(image, torch.full_like(image, 0.08), torch.maximum(rim, bridge))


def _seen_by_camera(image: Tensor, parameters: Parameters, plane: _Plane, noise: Tensor) -> Tensor:
    """Light that falls from one side, blur of the given width in pixels, and the sensor's noise."""
    towards = torch.deg2rad(parameters["light_angle"])
    side = (plane.x * torch.cos(towards) - plane.y * torch.sin(towards)) / _HALF_WIDTH
    lit = image * (parameters["light"] * (1 + 0.25 * side))[:, None]
    grain = 0.05 * (noise.flip(1, 2) - 0.5)
    return (_blurred(lit, parameters["blur"]) + grain[:, None]).clamp(0, 1)


def _blurred(images: Tensor, width: Tensor) -> Tensor:
    """Gaussian blur with a width of its own for each image: one grouped convolution per direction."""
    samples, channels, rows, columns = images.shape
    reach = torch.arange(-_BLUR_REACH, _BLUR_REACH + 1)
    weights = torch.exp(-0.5 * (reach / width.reshape(-1, 1).clamp(min=1e-3)) ** 2)
    weights = (weights / weights.sum(1, keepdim=True)).repeat_interleave(channels, 0)[:, None]
    flat = images.reshape(1, samples * channels, rows, columns)
    flat = F.pad(flat, (_BLUR_REACH,) * 4, mode="replicate")
    flat = F.conv2d(flat, weights[..., None], groups=samples * channels)
    return F.conv2d(flat, weights[:, :, None], groups=samples * channels).reshape(images.shape)


def _between(colours: Tensor, fraction: Tensor) -> Tensor:
    """The colour at `fraction` in [0, 1] along a line of colours, shape (samples, 3, 1, 1)."""
    at = fraction.reshape(-1) * (len(colours) - 1)
    low = at.floor().clamp(0, len(colours) - 2).long()
    share = (at - low)[:, None]
    return (colours[low] * (1 - share) + colours[low + 1] * share)[:, :, None, None]


def _mix(under: Tensor, over: Tensor, cover: Tensor) -> Tensor:
    """`over` painted on `under`, images (samples, 3, height, width), where `cover` (samples, height, width) is 1."""
    return under + (over - under) * cover[:, None]
