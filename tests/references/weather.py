"""Rain and fog pixel by pixel, straight from what their docstrings say; given where streaks and lattices lie."""

import math

import numpy as np


def streak_mask(height, width, places, length, thick, slant):
    """Each streak starts at a place (x, y), falls `length` rows, leans, and goes round at the borders."""
    mask = np.zeros((height, width), dtype=bool)
    for x, y in places:
        for step in range(length):
            column = math.floor(x * width + math.tan(math.radians(slant)) * step)
            for beside in range(thick):
                mask[(int(y * height) + step) % height, (column + beside) % width] = True
    return mask


def window_mean(image, radius):
    """Mean over a square: per side two windows of the largest power of two that fits, one at either end."""
    width = 2 * radius + 1
    half = 2 ** (width.bit_length() - 1)
    weights = np.zeros(width)
    weights[:half] += 1
    weights[-half:] += 1
    padded = np.pad(image, radius, mode="edge")
    mean = np.zeros_like(image)
    for row in range(image.shape[0]):
        for column in range(image.shape[1]):
            square = padded[row : row + width, column : column + width]
            mean[row, column] = weights @ square @ weights / weights.sum() ** 2
    return mean


def spline(distance):
    """The cubic B-spline."""
    distance = abs(distance)
    if distance < 1:
        return 2 / 3 - distance**2 + distance**3 / 2
    return max(0.0, 2 - distance) ** 3 / 6


def surface(lattice, height, width):
    """B-splines over a lattice from border to border, whose outermost values go on for one more point."""
    high, wide = lattice.shape
    wider = np.pad(lattice, 1, mode="edge")
    made = np.zeros((height, width))
    for row in range(height):
        for column in range(width):
            y, x = (row + 0.5) / height * (high - 1), (column + 0.5) / width * (wide - 1)
            made[row, column] = sum(
                wider[i, j] * spline(y - (i - 1)) * spline(x - (j - 1))
                for i in range(high + 2)
                for j in range(wide + 2)
            )
    return made
