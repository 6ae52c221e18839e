"""Parts of HTML pages: scales, gauges, charts, SVG, text, templates.

The report and the survey page are made with it. Start at ``page``, which fills in
templates; ``charts`` and ``gauges`` draw on ``scales`` with ``svg``;
``figure_svg`` takes saved figures over, ``text`` formulas, ``colours`` holds the
palette. Nothing of jinja2 is imported until a name of this package is used.
"""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
