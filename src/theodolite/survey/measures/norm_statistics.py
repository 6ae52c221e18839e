"""Statistics of each norm layer: samples behind them, running statistics, modes."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .contract import Found, Measure, number
from .gauges import NormIntake
from .site import Site

_BatchNorm = nn.modules.batchnorm._BatchNorm


class NormsMeasure(Measure):
    r"""Statistics of every norm layer, and how they compare with running ones.

    ``batch_per_channel`` counts the numbers behind one statistic, over a batch as
    given. ``running_mean_distance`` is the root mean square over channels of
    $(\mu_{\text{run}} - \mu)/\sigma$, and ``running_var_ratio`` of
    $\ln(\sigma^2_{\text{run}}/\sigma^2)$, with the batch's $\mu$ and $\sigma$; their
    errors are what statistics of $m$ numbers are off by chance, $1/\sqrt m$ and
    $\sqrt{2/m}$.
    """

    name: ClassVar = "norms"

    def refusal(self, site: Site) -> str:
        """Refuse a model without norm layers."""
        if not site.sounding.norms:
            return (
                "the network has no norm layers of torch: there is nothing to compare"
            )
        return ""

    def rows(self, site: Site, gradients: float) -> Iterator[Found]:
        """Yield the numbers of each layer."""
        modules = dict(site.model.named_modules())
        for name, intake in site.sounding.norms.items():
            module = modules[name]
            labels = {"module": name, "kind": type(module).__name__}
            count = intake.per_sample * (site.samples if intake.across else 1)
            yield number("batch_per_channel", count, 0.0, **labels)
            error, seen = site.rounding * intake.least, site.sounding.samples
            yield number("variance_min", intake.least, error, n_samples=seen, **labels)
            training = site.modes.get(name, module.training)
            yield number("in_train_mode", float(training), 0.0, **labels)
            frozen = float(training and _is_frozen(module))
            yield number("frozen_in_train_mode", frozen, 0.0, **labels)
            if isinstance(module, _BatchNorm) and module.running_mean is not None:
                yield from _running(site, module, intake, labels)


def _is_frozen(module: nn.Module) -> bool:
    """Return whether a layer has parameters, but no trained ones."""
    own = list(module.parameters(recurse=False))
    return bool(own) and not any(p.requires_grad for p in own)


def _running(
    site: Site, module: Any, intake: NormIntake, labels: dict[str, Any]
) -> Iterator[Found]:
    variance = intake.variance + module.eps
    mean, running = module.running_mean, module.running_var
    off = (_plain(mean) - intake.mean) / variance.sqrt()
    ratio = ((_plain(running) + module.eps) / variance).log()
    count = max(intake.per_sample * site.sounding.samples, 1)
    distance, seen = float(off.square().mean().sqrt()), site.sounding.samples
    error, facts = 1 / math.sqrt(count), {**labels, "n_samples": seen}
    yield number("running_mean_distance", distance, error, **facts)
    log_ratio = float(ratio.square().mean().sqrt())
    yield number("running_var_ratio", log_ratio, math.sqrt(2) * error, **facts)


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().to(torch.float64)
