"""Colours of kinds and of ordered levels: apart for every eye, on every page."""

from itertools import combinations

import numpy as np
import pytest

from theodolite.core import UnknownNameError
from theodolite.figures import (
    KINDS,
    MUTED,
    PALETTE,
    TEXT_COLOUR,
    kind_style,
    ordered_style,
    shortcut_kind,
)
from theodolite.figures.style import RAMP

DARK_PAGE = "#16181D"
# Machado, Oliveira & Fernandes (2009), severity 1: eyes without red or green cones.
EYES = {
    "all cones": np.eye(3),
    "no red": np.array([[0.152286, 1.052583, -0.204868],
                        [0.114503, 0.786281, 0.099216],
                        [-0.003882, -0.048116, 1.051998]]),
    "no green": np.array([[0.367322, 0.860646, -0.227968],
                          [0.280085, 0.672501, 0.047413],
                          [-0.011820, 0.042940, 0.968881]]),
}  # fmt: skip


def linear(colour):
    share = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def luminance(colour):
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lab(light):
    """CIELAB of linear light, in daylight."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722],
                       [0.0193, 0.1192, 0.9505]])  # fmt: skip
    x, y, z = np.cbrt(to_xyz @ np.clip(light, 1e-4, 1) / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eye", EYES)
def test_no_two_colours_of_the_palette_look_alike(eye):
    """A difference of about 2 can just be seen side by side."""
    seen = {name: lab(EYES[eye] @ linear(colour)) for name, colour in PALETTE.items()}
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 15, (one, other)


@pytest.mark.parametrize("colour", [*PALETTE.values(), *RAMP])
def test_colours_stand_out_on_white_and_on_dark_pages(colour):
    assert contrast(colour, "#FFFFFF") > 2.1
    assert contrast(colour, DARK_PAGE) > 2.1


def test_the_ramp_is_in_order_where_print_is_grey():
    shades = [luminance(ordered_style(k, range(6)).colour) for k in range(6)]
    assert np.all(np.diff(shades) > 0.015)
    assert not set(RAMP) & set(PALETTE.values())


def test_levels_take_their_colour_by_rank():
    assert ordered_style(8, [2, 8, 512]) == ordered_style(3, [1, 3, 4])
    assert ordered_style(5, [5]).colour == RAMP[0]
    with pytest.raises(UnknownNameError, match="level '3'"):
        ordered_style(3, [1, 2])


def test_one_look_is_one_kind():
    """What has the same look has it because it is the same kind."""
    looks = {}
    for name, look in KINDS.items():
        looks.setdefault((look.colour, look.marker), set()).add(name)
    shared = {frozenset(names) for names in looks.values() if len(names) > 1}
    assert shared == {
        frozenset({"plain", "xavier", "chain"}),
        frozenset({"two_shortcut", "residual", "no_norm"}),
        frozenset({"batch_norm", "decay"}),
        frozenset({"modified", "added_identity"}),
        frozenset({"measured", "held_out"}),
    }


def test_shades_of_kin_are_told_apart():
    colours = {look.colour for look in KINDS.values()} - {TEXT_COLOUR, MUTED}
    for one, other in combinations(sorted(colours), 2):
        assert np.linalg.norm(lab(linear(one)) - lab(linear(other))) > 9, (one, other)


def test_kinds_are_known_by_name():
    assert kind_style(shortcut_kind(0)) == kind_style("plain")
    assert [shortcut_kind(n) for n in (1, 12)] == ["one_shortcut", "twelve_shortcut"]
    with pytest.raises(UnknownNameError, match="did you mean 'residual'"):
        kind_style("residul")
    with pytest.raises(UnknownNameError, match="shortcut length '5'"):
        shortcut_kind(5)
