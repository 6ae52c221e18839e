"""What watched loops and trainer callbacks share."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from theodolite.core import Cost, Rows
from theodolite.training import Probe

from .course import Course
from .quantities import DEFAULT, Scene, probes_of
from .telling import Telling


class Logbook:
    """The probes of the watched quantities, and the rows that they measured.

    Args:
        scene: State shared by all measurements.
        every: Steps between two measurements.
        quantities: Names of quantities; by default those that this model has.
        live: Whether to draw in a terminal.
        html: File to write a page to at the end.

    Attributes:
        scene: State shared by all measurements.
        probes: One probe per quantity.
        telling: The tracker that keeps rows and draws them.
        retired: Returns the probes that failed, with the reason.
        settings: Settings of the optimiser and the loss, for the page.
    """

    def __init__(
        self,
        scene: Scene,
        *,
        every: int,
        quantities: Iterable[str] | None,
        live: bool,
        html: str | Path | None,
    ) -> None:
        self.scene, self._every, self._html = scene, every, html
        names = DEFAULT if quantities is None else quantities
        self.probes: list[Probe] = probes_of(names, scene, every)
        self.telling = Telling(live=live, end=self._write)
        self.retired: Callable[[], Mapping[str, str]] = dict
        self.settings: dict[str, Any] = {}
        self._steps = 0

    def course(self, steps: int | None = None) -> Course:
        """Return what was measured so far.

        Args:
            steps: Updates made; by default those up to the last measurement.
        """
        self._steps = max(self._steps, self.telling.last, steps or 0)
        return Course(
            title=self.scene.title,
            every=self._every,
            steps=self._steps,
            measured=Rows(self.telling.rows),
            failures={**self.scene.missing, **self.retired()},
            cost=Cost(wall_s=self.scene.spent_s),
            norm_mode=str(self.scene.norm_mode),
            norm_layers=self.scene.norm_layers,
            settings=self.settings,
        )

    def _write(self) -> None:
        if self._html is not None:
            self.course().to_html(self._html)
