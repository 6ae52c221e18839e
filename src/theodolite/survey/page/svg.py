"""Elements of SVG as safe text."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

Attribute = str | float | None


def element(name: str, *inside: object, **attributes: Attribute) -> Markup:
    """Return one element; underscores of attribute names become hyphens.

    Example:
        >>> element("text", "a < b", x=1.26, class_="tick", text_anchor="end")
        Markup('<text x="1.3" class="tick" text-anchor="end">a &lt; b</text>')
    """
    told = Markup("").join(
        Markup(' {}="{}"').format(_name(key), _value(value))
        for key, value in attributes.items()
        if value is not None
    )
    body = Markup("").join(escape(one) for one in inside)
    start = Markup("<{}{}").format(Markup(name), told)
    if not inside:
        return start + Markup("/>")
    return start + Markup(">") + body + Markup("</{}>").format(Markup(name))


def group(inside: Iterable[object], **attributes: Attribute) -> Markup:
    """Return a group of elements."""
    return element("g", *inside, **attributes)


def line(points: Sequence[tuple[float, float]]) -> str:
    """Return the path data of a broken line.

    Example:
        >>> line([(0, 1), (2.04, 3)])
        'M0 1L2 3'
    """
    return "".join(
        f"{'L' if i else 'M'}{_value(x)} {_value(y)}" for i, (x, y) in enumerate(points)
    )


def box(x: float, y: float, width: float, height: float) -> str:
    """Return the path data of a rectangle.

    Example:
        >>> box(1, 2, 3, 4)
        'M1 2h3v4h-3z'
    """
    w = _value(width)
    return f"M{_value(x)} {_value(y)}h{w}v{_value(height)}h-{w}z"


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
