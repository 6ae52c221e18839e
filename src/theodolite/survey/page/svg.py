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
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if not inside:
        return Markup(f"<{name}{told}/>")
    return Markup(f"<{name}{told}>{''.join(map(escape, inside))}</{name}>")


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


def _value(value: object) -> str:
    """Write an attribute; numbers to a tenth, which no screen shows finer."""
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(value) if isinstance(value, int) else str(escape(value))
