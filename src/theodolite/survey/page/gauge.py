"""The number behind a finding, drawn against its threshold."""

import math

from markupsafe import Markup

from theodolite.survey.page.numbers import number
from theodolite.survey.page.scales import scale_of
from theodolite.survey.page.svg import element
from theodolite.survey.records.finding import Finding

_WIDE, _TALL, _MIDDLE = 190, 26, 11


def draw_gauge(finding: Finding) -> Markup | None:
    """Return value and error on a line whose far side of the threshold is shaded.

    Returns:
        None where the number is not finite.
    """
    value, threshold = finding.value, finding.threshold
    if not (math.isfinite(value) and math.isfinite(threshold)):
        return None
    error = finding.error if finding.error and math.isfinite(finding.error) else 0.0
    log = min(value, threshold) > 0 and max(value, threshold) > 4 * min(
        value, threshold
    )
    pad = 0.35 * abs(value - threshold)
    ends = [value, threshold]
    ends += (
        [] if log else [min(ends) - pad, max(ends) + pad, value - error, value + error]
    )
    if log:
        ratio = (max(ends) / min(ends)) ** 0.3
        ends += [min(ends) / ratio, max(ends) * ratio]
    x = scale_of(ends, 6, _WIDE - 6, log=log)
    edge, far = x(threshold), (x.end if finding.above else x.start)
    left, right = sorted((edge, far))
    told = f"{number(value, finding.error)}, threshold {number(threshold)}"
    return element(
        "svg",
        element("rect", class_="zone", x=left, y=3, width=right - left, height=16),
        element("path", class_="axis", d=f"M6 {_MIDDLE}H{_WIDE - 6}"),
        element("path", class_="threshold", d=f"M{edge:.1f} 1V21"),
        element(
            "path",
            class_="reach",
            d=f"M{x(value - error):.1f} {_MIDDLE}H{x(value + error):.1f}",
        ),
        element("circle", cx=x(value), cy=_MIDDLE, r=4.5),
        class_="gauge",
        width=_WIDE,
        height=_TALL - 4,
        viewBox=f"0 0 {_WIDE} {_TALL - 4}",
        role="img",
        aria_label=told,
    )
