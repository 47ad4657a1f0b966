import re

import pytest

from weakspot.report.html import page_style

CSS = page_style()


def palette(which: str) -> dict[str, str]:
    """The colours in the light, in the dark, or on paper; what a later block leaves out stays."""
    blocks = [dict(re.findall(r"--([\w-]+): (#\w{6});", block)) for block in re.findall(r":root \{(.*?)\}", CSS, re.S)]
    light, dark, paper = blocks
    return {**light, **{"light": {}, "dark": dark, "paper": paper}[which]}


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_by_hand() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("which", ["light", "dark", "paper"])
@pytest.mark.parametrize("text", ["ink", "quiet", "accent"])
@pytest.mark.parametrize("ground", ["paper", "raised", "caution", "warning"])
def test_text_is_readable_on_every_ground(which: str, text: str, ground: str) -> None:
    colours = palette(which)
    assert contrast(colours[text], colours[ground]) >= 4.5


@pytest.mark.parametrize("which", ["light", "dark", "paper"])
@pytest.mark.parametrize("line", ["accent", "mark", "green", "violet", "teal", "ochre"])
def test_lines_of_a_figure_stand_out_from_the_ground(which: str, line: str) -> None:
    colours = palette(which)
    assert contrast(colours[line], colours["paper"]) >= 3


def test_every_colour_has_a_dark_counterpart() -> None:
    assert palette("light").keys() == palette("dark").keys()
    assert all(palette("light")[name] != palette("dark")[name] for name in palette("light"))


def test_every_colour_that_is_used_is_defined() -> None:
    assert set(re.findall(r"var\(--([\w-]+)\)", CSS)) == palette("light").keys()
