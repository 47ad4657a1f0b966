"""Common corruptions pixel by pixel, straight from the paper's description; given the numbers that chance decides.

Images (height, width, channels), float64 from 0 to 1. Where numpy, scipy or Pillow do a step by themselves, they do it.
"""

import colorsys
import math

import numpy as np
from PIL import Image
from scipy import ndimage
from scipy.stats import poisson


def gaussian_noise(image, normal, deviation):
    return np.clip(image + deviation * normal, 0, 1)


def shot_noise(image, chance, photons):
    return np.clip(poisson.ppf(chance, image * photons) / photons, 0, 1)


def impulse_noise(image, chance, side, share):
    made = image.copy()
    for place in np.ndindex(image.shape):
        if chance[place] < share:
            made[place] = 1.0 if side[place] < 0.5 else 0.0
    return made


def disc(radius, softness):
    reach, window = (8, 1) if radius <= 8 else (radius, 2)
    side = 2 * reach + 1
    inside = np.array([[float(math.hypot(x - reach, y - reach) <= radius) for x in range(side)] for y in range(side)])
    bell = np.array([math.exp(-(step**2) / (2 * softness**2)) for step in range(-window, window + 1)])
    soft = ndimage.correlate1d(inside / inside.sum(), bell / bell.sum(), axis=0, mode="mirror")
    return ndimage.correlate1d(soft, bell / bell.sum(), axis=1, mode="mirror")


def defocus_blur(image, radius, softness):
    return ndimage.correlate(image, disc(radius, softness)[..., None], mode="mirror")


def glass_blur(image, moves, sigma, reach, rounds):
    """`moves`: for every round and pixel how many rows and columns on its partner lies."""
    height, width = image.shape[:2]
    soft = np.floor(ndimage.gaussian_filter(image, (sigma, sigma, 0), mode="nearest", truncate=4) * 255 + 1e-3) / 255
    for number in range(rounds):
        for row in range(height - reach, reach, -1):
            for column in range(width - reach, reach, -1):
                down, across = moves[number][row * width + column]
                soft[row, column] = soft[row + down, column + across]
    return ndimage.gaussian_filter(soft, (sigma, sigma, 0), mode="nearest", truncate=4)


def smeared(image, degrees, radius, sigma):
    height, width = image.shape[:2]
    weights = np.array([math.exp(-(step**2) / (2 * sigma**2)) for step in range(2 * radius + 1)])
    weights /= weights.sum()
    made, angle = np.zeros_like(image), math.radians(degrees)
    for step, weight in enumerate(weights):
        down, across = (math.ceil(step * part(angle) - 0.5) for part in (math.sin, math.cos))
        if abs(down) >= height or abs(across) >= width:
            break
        for row in range(height):
            for column in range(width):
                made[row, column] += (
                    weight * image[min(max(row + down, 0), height - 1), min(max(column + across, 0), width - 1)]
                )
    return made


def zoomed(image, zoom):
    height, width = image.shape[:2]
    cut = math.ceil(height / zoom), math.ceil(width / zoom)
    top, left = (height - cut[0]) // 2, (width - cut[1]) // 2
    part = image[top : top + cut[0], left : left + cut[1]]
    large = ndimage.zoom(part, (zoom, zoom, 1), order=1, mode="nearest")  # the default may blacken the last row
    top, left = (large.shape[0] - height) // 2, (large.shape[1] - width) // 2
    return large[top : top + height, left : left + width]


def zoom_blur(image, most, step):
    zooms = np.arange(1, most, step)
    return (image + sum(zoomed(image, zoom) for zoom in zooms)) / (len(zooms) + 1)


def snow(image, layer, degrees, zoom, least, radius, sigma, kept):
    """`layer`: the flakes before they are enlarged."""
    height, width = image.shape[:2]
    large = ndimage.zoom(layer[..., None], (zoom, zoom, 1), order=1, mode="nearest")
    large[large < least] = 0
    fallen = smeared(np.clip(large, 0, 1), degrees, radius, sigma)
    fallen = np.round(fallen * 255)[:height, :width] / 255
    grey = (image @ [0.299, 0.587, 0.114])[..., None]
    pale = kept * image + (1 - kept) * np.maximum(image, grey * 1.5 + 0.5)
    return np.clip(pale + fallen + np.rot90(fallen, 2), 0, 1)


def plasma(size, decay, drawn):
    """Diamond-square on a torus; `drawn(level, row, column)` gives numbers from −1 to 1."""
    grid, step, wibble, level = np.zeros((size, size)), size, 100.0, 0
    while step >= 2:
        half = step // 2
        for row in range(0, size, step):
            for column in range(0, size, step):
                corners = [grid[(row + i) % size, (column + j) % size] for i in (0, step) for j in (0, step)]
                noise = wibble**2 * drawn(level, row // step, column // step)
                grid[row + half, column + half] = sum(corners) / 4 + noise
        before = grid.copy()
        for number, (i, j) in enumerate([(0, half), (half, 0)]):
            for row in range(0, size, step):
                for column in range(0, size, step):
                    places = [(row + i + half, column + j), (row + i - half, column + j)]
                    places += [(row + i, column + j + half), (row + i, column + j - half)]
                    around = [before[y % size, x % size] for y, x in places]
                    noise = wibble**2 * drawn(level + 1 + number, row // step, column // step)
                    grid[row + i, column + j] = sum(around) / 4 + noise
        step, wibble, level = half, wibble / decay, level + 3
    grid -= grid.min()
    return grid / grid.max()


def fog(image, drifts, thickness):
    height, width = image.shape[:2]
    most = image.max()
    return np.clip((image + thickness * drifts[:height, :width, None]) * most / (most + thickness), 0, 1)


def brightness(image, more):
    made = np.empty_like(image)
    for place in np.ndindex(image.shape[:2]):
        hue, saturation, value = colorsys.rgb_to_hsv(*image[place])
        made[place] = colorsys.hsv_to_rgb(hue, saturation, min(value + more, 1))
    return made


def contrast(image, factor):
    means = image.mean((0, 1))
    return np.clip((image - means) * factor + means, 0, 1)


def moved(image, across, down):
    """Linear interpolation at other places; the border's pixels are mirrored, themselves included."""
    rows, columns = np.mgrid[: image.shape[0], : image.shape[1]]
    places = rows + down, columns + across
    channels = [ndimage.map_coordinates(plane, places, order=1, mode="reflect") for plane in np.moveaxis(image, -1, 0)]
    return np.stack(channels, -1)


def smooth(noise, sigmas):
    return ndimage.gaussian_filter(noise, sigmas, mode="reflect", truncate=3)


def pixelate(image, share):
    height, width = image.shape[:2]
    channels = []
    for plane in np.moveaxis(image, -1, 0):
        small = Image.fromarray(plane.astype(np.float32)).resize((int(width * share), int(height * share)), Image.BOX)
        channels.append(np.asarray(small.resize((width, height), Image.NEAREST), dtype=np.float64))
    return np.stack(channels, -1)
