"""Every figure that a study draws in a test is looked at by the rules of the house."""

from matplotlib.colors import to_hex

from theodolite import figures
from theodolite.figures import INK, KINDS, MUTED, kind_style
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
        "plain", "residual", "batch_norm", "scalar_norm", "weak_branch",
        "strong_branch", "order_three", "orders_two_three", "orders_two_four",
        "opposite_gradients",
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
}  # fmt: skip
_OF_KINDS = {look.colour.lower() for look in KINDS.values()} - {
    INK.lower(),
    MUTED.lower(),
}


def strangers(paper, figure):
    """Return the colours of kinds in a figure that are none of its paper's."""
    known = {kind_style(name).colour.lower() for name in PAPERS[paper]}
    found = {to_hex(one.get_color()) for ax in figure.axes for one in ax.lines}
    return sorted((found & _OF_KINDS) - known)


def install(patch):
    """Look at figures when they are saved, and know whose they are."""
    draw, save, papers = judging.draw, figures.save, []

    def drawing(entry, *arguments):
        papers.append(entry.paper.name)
        try:
            return draw(entry, *arguments)
        finally:
            papers.pop()

    def looking(figure, stem, *arguments):
        files = save(figure, stem, *arguments)
        assert not figures.check(figure), (papers, stem, figures.check(figure))
        if papers and papers[-1] in PAPERS:
            assert not strangers(papers[-1], figure), (papers, stem)
        return files

    patch.setattr(judging, "draw", drawing)
    patch.setattr(figures, "save", looking)
