"""Saved runs to one self-contained HTML file.

Nothing of matplotlib or jinja2 is imported until a name of this room is used.
"""

from typing import TYPE_CHECKING

from theodolite.core import attach

if TYPE_CHECKING:
    from theodolite.report.collect import latest_summaries
    from theodolite.report.maths import renderable
    from theodolite.report.numbers import format_number
    from theodolite.report.page import render
    from theodolite.report.prose import formulas, unrenderable
    from theodolite.report.summary import Summary, parse_summary
    from theodolite.report.write import write_report

    __all__ = [
        "Summary",
        "format_number",
        "formulas",
        "latest_summaries",
        "parse_summary",
        "render",
        "renderable",
        "unrenderable",
        "write_report",
    ]
else:
    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "collect": ["latest_summaries"],
            "maths": ["renderable"],
            "numbers": ["format_number"],
            "page": ["render"],
            "prose": ["formulas", "unrenderable"],
            "summary": ["Summary", "parse_summary"],
            "write": ["write_report"],
        },
    )
