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
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if not inside:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{''.join(map(escape, inside))}</{name}>")


def group(inside: Iterable[object], look: str | None = None) -> Markup:
    """Return a group of elements, with a class for its style."""
    return element("g", *inside, class_=look)


def path(look: str, data: str, *inside: object, **attributes: Attribute) -> Markup:
    """Return a path with a class for its style."""
    return element("path", *inside, class_=look or None, d=data, **attributes)


def text_element(
    text: str, x: Attribute, y: Attribute, anchor: str = "start", look: str = ""
) -> Markup:
    """Return a piece of text."""
    return element("text", text, class_=look or None, x=x, y=y, text_anchor=anchor)


def picture(
    look: str, label: str, width: float, height: float, *inside: object
) -> Markup:
    """Return an SVG drawing with a label for screen readers."""
    return element(
        "svg", *inside, class_=look, viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img", aria_label=label,
    )  # fmt: skip


def line(points: Sequence[tuple[float, float]]) -> str:
    """Return the path data of a line through these points.

    Example:
        >>> line([(0, 1), (2.04, 3)])
        'M0 1L2 3'
    """
    return "".join(
        f"{'L' if i else 'M'}{_value(x)} {_value(y)}" for i, (x, y) in enumerate(points)
    )


def rectangle(x: float, y: float, width: float, height: float) -> str:
    """Return the path data of a rectangle.

    Example:
        >>> rectangle(1, 2, 3, 4)
        'M1 2h3v4h-3z'
    """
    w = _value(width)
    return f"M{_value(x)} {_value(y)}h{w}v{_value(height)}h-{w}z"


def _value(value: object) -> str:
    """Write an attribute; numbers to a tenth, which no screen shows finer."""
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(value) if isinstance(value, int) else str(escape(value))
