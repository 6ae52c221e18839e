"""What the optimiser given does, and whom it leaves out."""

from collections.abc import Iterator
from typing import Any, ClassVar

from torch.optim import Optimizer

from theodolite.core import NormMode

from .contract import Allowance, Found, Measure, number
from .invariant import invariant_weights
from .site import Site


class OptimizerMeasure(Measure):
    """Weight decay and momentum in use, parameters left out, decay without effect.

    ``decay_on_invariant_share`` is the share, among the numbers that decay acts on, of
    weights whose scale a norm behind them takes away: there decay only raises the
    effective rate.
    """

    name: ClassVar = "optimizer"
    weight: ClassVar = 0.2

    def refusal(self, site: Site) -> str:
        """Want an optimiser."""
        if site.optimizer is None:
            return "no optimiser was given: pass optimizer=… to have it looked at"
        return ""

    def forecast(self, site: Site) -> float:
        """Return nothing: all is read off."""
        return 0.0

    def rows(self, site: Site, allowance: Allowance) -> Iterator[Found]:
        """Yield what is in use, then what is left out."""
        assert site.optimizer is not None
        groups = site.optimizer.param_groups
        yield number("weight_decay", _largest(groups, "weight_decay"), 0.0)
        yield number("momentum", momentum_of(groups), 0.0)
        yield number("steps_made", _steps(site.optimizer), 0.0)
        held = {id(p) for group in groups for p in group["params"]}
        frozen = missing = 0
        for name, parameter in site.model.named_parameters():
            if not parameter.requires_grad:
                frozen += parameter.numel()
            elif id(parameter) not in held:
                missing += parameter.numel()
                owner = name.rpartition(".")[0]
                yield number("left_out", parameter.numel(), 0.0, module=owner)
        yield number("frozen_parameters", frozen, 0.0)
        yield number("not_in_optimizer", missing, 0.0)
        yield from _decay(site, groups)


def _largest(groups: list[dict[str, Any]], key: str) -> float:
    return max((float(group.get(key) or 0.0) for group in groups), default=0.0)


def momentum_of(groups: list[dict[str, Any]]) -> float:
    """Return the momentum of an optimiser, of Adam and its kin the first beta."""
    betas = [group["betas"][0] for group in groups if group.get("betas")]
    return float(max(betas)) if betas else _largest(groups, "momentum")


def _steps(optimizer: Optimizer) -> float:
    """Return the steps that an optimiser counted; plain descent counts none."""
    counts = [state.get("step", 0) for state in optimizer.state.values()]
    return float(max(counts, default=0))


def _decay(site: Site, groups: list[dict[str, Any]]) -> Iterator[Found]:
    names = {id(p): name for name, p in site.model.named_parameters()}
    decayed = [
        p for group in groups if group.get("weight_decay") for p in group["params"]
    ]
    total = sum(p.numel() for p in decayed)
    if not total:
        return
    invariant: set[str] = set()
    if site.norm_mode is not NormMode.EVAL:
        invariant = invariant_weights(site)
    on = [p for p in decayed if names.get(id(p)) in invariant]
    share = sum(p.numel() for p in on) / total
    yield number("decay_on_invariant_share", share, 0.0)
    for name in (names[id(p)] for p in on):
        labels = {"module": name.rpartition(".")[0], "parameter": name}
        yield number("decays_invariant", 1.0, 0.0, **labels)
