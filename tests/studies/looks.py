"""Every figure that a study draws in a test is looked at by the rules of the house."""

import functools
import json
from pathlib import Path

from matplotlib.colors import to_hex

from tests.figures.checks import check
from theodolite import figures
from theodolite.figures import KINDS, MUTED, TEXT_COLOUR, kind_style
from theodolite.studies import judging

# Kinds that figures of a paper show; no two of them share a colour.
PAPERS = {
    "li2016demystifying": (
        "plain", "orthogonal", "one_shortcut", "two_shortcut", "three_shortcut",
        "four_shortcut", "six_shortcut", "twelve_shortcut", "one_shortcut_tanh",
        "one_shortcut_relu_after", "one_shortcut_turned", "two_shortcut_relu",
        "batch_norm",
    ),
    "littwin2016loss": (
        "plain", "residual", "batch_norm", "norm_without_decay", "scalar_norm",
        "weak_branch", "strong_branch", "order_three", "orders_two_three",
        "orders_two_four", "opposite_gradients",
    ),
    "macdonald2023skip": (
        "plain", "residual", "average", "average_in_branch", "average_and_details",
        "random_isometry", "original", "modified", "one_layer", "one_layer_far",
        "two_layers", "branch_at_zero", "smooth_gate", "single_batches",
    ),
    "poggio2020square": (
        "no_norm", "decay", "grown", "held", "square_loss", "cross_entropy", "linear",
        "relu", "relu_single_samples", "first_layer", "first_layer_kinks", "last_layer",
    ),
    # Studies beyond the papers have nothing in common, so each has kinds of its own.
    "beyond/phase_diagram": (),
    "beyond/scheduled_norm": ("no_norm", "decay", "grown", "held"),
    "beyond/why_it_helps": (
        "average", "average_in_branch", "average_and_details", "random_isometry",
    ),
    "beyond/whole_set_curvature": ("residual", "single_batches"),
    "beyond/certified_ratio": ("scalar_norm", "residual", "batch_norm", "plain"),
}  # fmt: skip
NUMBERS = Path(__file__).with_name("numbers.json")  # what numbers.py writes
_OF_KINDS = {look.colour.lower() for look in KINDS.values()} - {
    TEXT_COLOUR.lower(),
    MUTED.lower(),
}


def kinds_of(entry):
    """Return the key of ``PAPERS`` that a study's figures keep to."""
    return entry.full_name if entry.paper.name == "beyond" else entry.paper.name


def strangers(paper, figure):
    """Return the colours of kinds in a figure that are none of its paper's."""
    known = {kind_style(name).colour.lower() for name in PAPERS[paper]}
    colours = {to_hex(one.get_color()) for ax in figure.axes for one in ax.lines}
    return sorted((colours & _OF_KINDS) - known)


def described(figure):
    """Return the size of a figure, and scales and labels of its panels."""
    size = "×".join(f"{inches:.3g}" for inches in figure.get_size_inches())
    panels = (
        f"{ax.get_xscale()}-{ax.get_yscale()} {ax.get_xlabel()} | {ax.get_ylabel()}"
        for ax in figure.axes
    )
    return [size, *panels]


def install(patch):
    """Look at figures when they are saved, and know whose they are."""
    draw, save, studies = judging.draw, figures.save, []

    def drawing(entry, folder, *arguments):
        studies.append((entry, folder.spec.scale))
        try:
            return draw(entry, folder, *arguments)
        finally:
            studies.pop()

    @functools.wraps(save)
    def looking(figure, stem, *arguments):
        entry, scale = studies[-1] if studies else (None, "")
        if entry is not None and kinds_of(entry) in PAPERS:
            assert not strangers(kinds_of(entry), figure), (entry.full_name, stem)
            if scale == "smoke":
                kept = json.loads(NUMBERS.read_text())[entry.full_name]
                assert described(figure) == kept[f"figure {stem}"]
        files = save(figure, stem, *arguments)
        assert not check(figure), (stem, check(figure))
        return files

    patch.setattr(judging, "draw", drawing)
    patch.setattr(figures, "save", looking)
