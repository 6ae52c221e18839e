"""What a critical eye would find in a figure, as rules.

A rule looks at a figure as it is laid out and returns a sentence for each fault. None
of them knows what a figure is about: they hold for every figure of the house.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from matplotlib.figure import Figure

from theodolite.figures import check_marks, check_text
from theodolite.figures.legends import settle
from theodolite.figures.style import house_style


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A fault of a figure.

    Attributes:
        rule: Name of the rule that it breaks.
        words: What is wrong and where, in a sentence.
    """

    rule: str
    words: str


RULES: dict[str, Callable[[Figure], list[str]]] = {
    "legend over data": check_marks.legends_over_data,
    "mark without a legend": check_marks.unexplained_marks,
    "hidden series": check_marks.hidden_series,
    "ends without a mark": check_marks.unmarked_ends,
    "colour of no kind": check_marks.strange_colours,
    "too many colours": check_marks.many_colours,
    "logarithm in words": check_text.logarithms_in_words,
    "small text": check_text.small_text,
    "text over text": check_text.text_over_text,
    "text off the page": check_text.text_off_the_page,
}


def check(figure: Figure) -> list[Finding]:
    """Return what breaks a rule of the house in a figure; nothing where all is well.

    Args:
        figure: What :func:`new_figure` made, with all that it shows.

    Example:
        >>> from theodolite.figures import kind_style, line, new_figure
        >>> figure, (ax,) = new_figure()
        >>> for kind in ("plain", "residual"):
        ...     drawn = line(ax, [1, 2], [1, len(kind)], style=kind_style(kind))
        >>> {fault.rule for fault in check(figure)}
        {'mark without a legend'}
    """
    with house_style():
        settle(figure)
        figure.draw_without_rendering()  # letters of legends find their places then
        return [
            Finding(rule=rule, words=words)
            for rule, find in RULES.items()
            for words in find(figure)
        ]


def check_together(figures: Iterable[Figure]) -> list[Finding]:
    """Return colours that mean one kind in one figure and another in the next."""
    return [
        Finding(rule="one colour, two kinds", words=words)
        for words in check_marks.shared_colours(figures)
    ]
