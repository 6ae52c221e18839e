"""What the drawings of one page share: each shape and each style once.

A letter of an axis is drawn in every figure, and so is a line of the grid. Here they
are kept by what they are, under short names, and the page holds them a single time.
"""

from typing import Literal

from markupsafe import Markup

from theodolite.report.inks import followed, is_ink_or_paper

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_COLOURED = ("fill", "stroke", "stop-color", "color")

Follow = Literal["all", "inks", "none"]


class Sheet:
    """Shapes and styles of a page, in the order in which they were first wanted."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[tuple[str, str], ...], str] = {}
        self._styles: dict[str, str] = {}
        self._groups: dict[Markup, str] = {}
        self._drawings = 0

    def prefix(self) -> str:
        """Return what the identifiers of one more drawing begin with."""
        self._drawings += 1
        return f"f-{_name(self._drawings - 1)}"

    def shape(self, attributes: dict[str, str]) -> str:
        """Return the identifier of a path with these attributes."""
        key = tuple(sorted(attributes.items()))
        return self._shapes.setdefault(key, f"s-{_name(len(self._shapes))}")

    def group(self, inside: Markup) -> str:
        """Return the identifier of a group that holds this."""
        return self._groups.setdefault(inside, f"g-{_name(len(self._groups))}")

    def style(self, declarations: str, *, follow: Follow = "all") -> str:
        """Return the class of a style.

        Args:
            declarations: Declarations that are safe to stand in a style sheet.
            follow: Which colours follow the page from light to dark: all of them, the
                inks and papers alone, or none, where they encode values.
        """
        told = ";".join(
            _declared(name.strip(), value.strip(), follow)
            for name, colon, value in (
                one.partition(":") for one in declarations.split(";")
            )
            if colon
        )
        return self._styles.setdefault(told, f"d-{_name(len(self._styles))}")

    @property
    def css(self) -> Markup:
        """The style sheet of all drawings."""
        rules = (f".{name}{{{told}}}" for told, name in self._styles.items())
        return Markup("\n".join(rules))

    @property
    def shapes(self) -> Markup:
        """All shapes, for a drawing that is not shown."""
        paths = [
            Markup('<path id="{}"{}/>').format(
                name, Markup("").join(Markup(' {}="{}"').format(*pair) for pair in key)
            )
            for key, name in self._shapes.items()
        ]
        groups = [
            Markup('<g id="{}">{}</g>').format(name, inside)
            for inside, name in self._groups.items()
        ]
        return Markup("\n").join([*paths, *groups])


def _declared(name: str, value: str, follow: Follow) -> str:
    """Return a declaration, followed by one that browsers of today prefer."""
    plain = f"{name}:{value}"
    if name not in _COLOURED or follow == "none":
        return plain
    if follow == "inks" and not is_ink_or_paper(value):
        return plain
    twice = followed(value)
    return plain if twice == value else f"{plain};{name}:{twice}"


def _name(place: int) -> str:
    """Return a short name for a place: letters and digits, counted through."""
    name = ""
    while True:
        place, last = divmod(place, len(_LETTERS))
        name = _LETTERS[last] + name
        if not place:
            return name
