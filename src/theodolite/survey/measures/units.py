"""Dead, silent and saturated units of every activation."""

import math
from collections.abc import Iterator
from typing import ClassVar

from .charting import fed_by_inputs
from .contract import Found, Measure, number
from .feeding import inside_gates, layer_before
from .site import Site


class UnitsMeasure(Measure):
    """Shares of dead units, of zeros, and of saturated outputs.

    If a unit is zero for all $n$ samples, other samples activate it with a probability
    of at most $3/n$ (rule of three); that is the error of ``dead_share``.
    ``twin_share`` counts live units with the same output as another. The label
    ``layer`` is the layer with weights before the activation; ``gate`` says whether
    its units only scale another signal.
    """

    name: ClassVar = "units"

    def refusal(self, site: Site) -> str:
        """Refuse a model without activations."""
        if not site.chart.anatomy.activations:
            return site.unmapped or (
                "the network has no activations: there are no units to look at"
            )
        return ""

    def rows(self, site: Site, gradients: float) -> Iterator[Found]:
        """Yield shares, activation by activation."""
        recording = site.chart.anatomy.recording
        fed = fed_by_inputs(recording)
        gates = inside_gates(site.chart.anatomy, fed)
        seen: dict[str, int] = {}
        for activation in site.chart.anatomy.activations:
            output = recording.calls[activation.call].outputs[0]
            counts = site.sounding.units.get(output)
            if counts is None:
                continue
            name = activation.module or "the model"
            seen[name] = seen.get(name, 0) + 1
            labels = {
                "module": name if seen[name] == 1 else f"{name}#{seen[name]}",
                "kind": activation.kind,
                "n_units": counts.units,
                "layer": layer_before(recording, recording.calls[activation.call], fed),
                "gate": output in gates,
                "n_samples": site.sounding.samples,
            }
            share = counts.dead / max(counts.units, 1)
            doubt = 3 / site.sounding.samples if counts.dead else 0.0
            yield number("dead_share", share, min(share * doubt, share), **labels)
            twins = counts.twins / max(counts.units, 1)
            yield number("twin_share", twins, 0.0, **labels)
            error = _binomial(counts.silent, site)
            yield number("silent_share", counts.silent, error, **labels)
            if not math.isnan(counts.saturated):
                error = _binomial(counts.saturated, site)
                yield number("saturated_share", counts.saturated, error, **labels)


def _binomial(share: float, site: Site) -> float:
    """Return the standard error if all entries of a sample agree: the largest one."""
    return math.sqrt(share * (1 - share) / site.sounding.samples)
