"""One colour and marker for each kind of network, in every figure of every paper.

Kinds of one paper never share a colour. Related kinds, such as two activations of one
network, are shades of one colour with different markers. Measurements of a figure's
only kind are drawn in ``TEXT_COLOUR``; laws, bounds and guides in ``MUTED``.
"""

from dataclasses import replace

from theodolite.core import unknown_name

from .style import MUTED, PALETTE, TEXT_COLOUR, SeriesStyle


def _look(colour: str, marker: str) -> SeriesStyle:
    return SeriesStyle(PALETTE[colour], marker, "solid")


_PLAIN = _look("vermilion", "s")
_ORTHOGONAL = _look("orange", "D")
_ONE = _look("sky", "^")
_TWO = _look("blue", "o")
_THREE = _look("purple", "v")
_NORM = _look("green", "D")
_SCALAR = _look("purple", "D")
_AVERAGE = _look("green", "^")
_ISOMETRY = _look("brown", "D")
_ONE_LAYER = _look("orange", "o")
_FIRST_LAYER = _look("indigo", "o")
_RELU = _look("vermilion", "D")
_INK = SeriesStyle(TEXT_COLOUR, "o", "solid")
_MUTED = SeriesStyle(MUTED, "s", "solid")

# Names in one tuple are one kind under several names.
_KINDS: dict[tuple[str, ...], SeriesStyle] = {
    # Shortcuts, by the layers that they skip.
    ("plain", "xavier", "chain"): _PLAIN,
    ("orthogonal",): _ORTHOGONAL,
    ("one_shortcut",): _ONE,
    ("two_shortcut", "residual", "no_norm"): _TWO,
    ("three_shortcut",): _THREE,
    ("four_shortcut",): _THREE.darker("D"),
    ("six_shortcut",): _THREE.lighter("s"),
    ("twelve_shortcut",): _look("indigo", "s"),
    # Activations and labels of networks with shortcuts.
    ("one_shortcut_tanh",): _ONE.lighter("D"),
    ("one_shortcut_relu_after",): _ONE.darker("v"),
    ("one_shortcut_turned",): _look("brown", "x"),
    ("two_shortcut_relu",): _TWO.darker("s"),
    # Norms.
    ("batch_norm", "decay"): _NORM,
    ("scalar_norm",): _SCALAR,
    ("norm_without_decay",): _NORM.darker("o"),
    ("grown",): _NORM.darker("s"),
    ("held",): _NORM.lighter("o"),
    # Scales of branches in a residual network, from weak to strong.
    ("weak_branch",): _TWO.lighter("v"),
    ("strong_branch",): _TWO.darker("D"),
    # Mixtures of orders in a spin glass.
    ("order_three",): _look("orange", "^"),
    ("orders_two_three",): _look("sky", "v"),
    ("orders_two_four",): _look("brown", "o"),
    ("opposite_gradients",): _look("indigo", "^"),
    # What is added to a network.
    ("average",): _AVERAGE,
    ("average_in_branch",): _AVERAGE.darker("v"),
    ("average_and_details",): _ISOMETRY,
    ("random_isometry",): _ISOMETRY.lighter("s"),
    ("original",): _look("sky", "o"),
    ("modified", "added_identity"): replace(_look("purple", "s"), line="dashdot"),
    # Batches that are read one by one, beside the whole set.
    ("single_batches",): _PLAIN.darker("s"),
    # Small networks that a theorem follows to their infimum.
    ("one_layer",): _ONE_LAYER,
    ("one_layer_far",): _ONE_LAYER.darker("s"),
    ("two_layers",): _look("indigo", "D"),
    ("branch_at_zero",): _TWO.lighter("^"),
    ("smooth_gate",): _TWO.darker("v"),
    # Losses, activations and layers.
    ("square_loss",): _look("orange", "s"),
    ("cross_entropy",): _look("purple", "o"),
    ("linear",): _look("sky", "s"),
    ("relu",): _RELU,
    ("relu_single_samples",): _RELU.darker("v"),
    ("first_layer",): _FIRST_LAYER,
    ("first_layer_kinks",): _FIRST_LAYER.lighter("^"),
    ("last_layer",): _look("brown", "s"),
    # Of no kind: the only series of a figure, and the marks next to it.
    ("measured", "held_out"): _INK,
    ("training_samples",): SeriesStyle(TEXT_COLOUR, "^", "dashdot"),
    ("beside",): _MUTED,
    ("bound",): SeriesStyle(MUTED, "v", "solid"),
    ("tighter_bound",): SeriesStyle(MUTED, "D", "dashed"),
}

KINDS: dict[str, SeriesStyle] = {
    name: look for names, look in _KINDS.items() for name in names
}
_LENGTHS = {1: "one", 2: "two", 3: "three", 4: "four", 6: "six", 12: "twelve"}


def kind_style(name: str) -> SeriesStyle:
    """Return the style of a kind of network, the same in every figure.

    Args:
        name: One of ``KINDS``.

    Example:
        >>> kind_style("residual") == kind_style("two_shortcut")
        True
    """
    if name not in KINDS:
        raise unknown_name("kind", name, KINDS)
    return KINDS[name]


def shortcut_kind(length: int) -> str:
    """Return the kind whose shortcuts skip this many layers; 0 means no shortcut.

    Example:
        >>> shortcut_kind(2)
        'two_shortcut'
    """
    if length == 0:
        return "plain"
    if length not in _LENGTHS:
        raise unknown_name("shortcut length", str(length), [str(n) for n in _LENGTHS])
    return f"{_LENGTHS[length]}_shortcut"
