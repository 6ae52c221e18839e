"""Saved runs to one self-contained HTML file.

Nothing of matplotlib or jinja2 is imported until a name of this room is used.
"""

from typing import TYPE_CHECKING

from theodolite.core import attach

if TYPE_CHECKING:
    from theodolite.report.collect import JudgedRun, judged_runs
    from theodolite.report.errata import errata_page, write_errata
    from theodolite.report.maths import renderable
    from theodolite.report.numbers import format_number
    from theodolite.report.page import render
    from theodolite.report.prose import formulas, unrenderable
    from theodolite.report.write import write_report

    __all__ = [
        "JudgedRun",
        "errata_page",
        "format_number",
        "formulas",
        "judged_runs",
        "render",
        "renderable",
        "unrenderable",
        "write_errata",
        "write_report",
    ]
else:
    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "collect": ["JudgedRun", "judged_runs"],
            "errata": ["errata_page", "write_errata"],
            "maths": ["renderable"],
            "numbers": ["format_number"],
            "page": ["render"],
            "prose": ["formulas", "unrenderable"],
            "write": ["write_report"],
        },
    )
