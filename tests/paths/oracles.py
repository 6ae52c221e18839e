"""Paths by brute force: modules frozen by hand, all sub-networks run one by one."""

from itertools import chain, combinations

import torch
from torch import nn

from tests.paths.nets import Tap

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


class Held:
    """A network whose gates and statistics stay those of one pass.

    Args:
        net: Made of modules that are known here, each used once.
        x: The inputs.
        statistics: Of batch norms: those of the batch, or running.
    """

    def __init__(self, net, x, *, statistics):
        self.net, self.x = net, x
        self.taps = [m for m in net.modules() if isinstance(m, Tap)]
        self._acts, handles = {}, []
        for module in net.modules():
            if make := self._maker(module, statistics):
                handles.append(module.register_forward_pre_hook(make))
        with torch.no_grad():
            net.eval()
            self.true = net(x)
        for handle in handles:
            handle.remove()
        for module, act in self._acts.items():
            module.forward = act

    def at(self, levels):
        """Return the output with every branch at a level."""
        for tap, level in zip(self.taps, levels, strict=True):
            tap.level = level
        with torch.no_grad():
            return self.net(self.x)

    def coefficients(self):
        """Return sums over paths by branches taken, by inclusion and exclusion."""
        count = len(self.taps)
        sets = list(chain(*(combinations(range(count), k) for k in range(count + 1))))
        values = {s: self.at([float(j in s) for j in range(count)]) for s in sets}
        result = [torch.zeros_like(self.true) for _ in range(count + 1)]
        for taken in sets:
            for part in chain(*(combinations(taken, k) for k in range(len(taken) + 1))):
                sign = (-1) ** (len(taken) - len(part))
                result[len(taken)] += sign * values[part]
        return torch.stack(result)

    def _maker(self, module, statistics):
        if isinstance(module, nn.ReLU):
            return lambda m, args: self._keep(m, (args[0] > 0).double())
        if isinstance(module, nn.LeakyReLU):
            slope = torch.tensor(module.negative_slope, dtype=torch.float64)
            one = torch.ones_like(slope)
            return lambda m, args: self._keep(m, torch.where(args[0] > 0, one, slope))
        if isinstance(module, nn.MaxPool2d):
            return self._pool
        if isinstance(module, nn.LayerNorm):
            return self._layer_norm
        if isinstance(module, NORMS) and statistics == "batch":
            return self._measure
        return None

    def _keep(self, module, factor):
        self._acts[module] = lambda x: x * factor

    def _pool(self, module, args):
        _, places = nn.functional.max_pool2d(args[0], 2, return_indices=True)
        self._acts[module] = lambda x: (
            x.flatten(2).gather(2, places.flatten(2)).reshape(places.shape)
        )

    def _layer_norm(self, module, args):
        mean = args[0].mean(-1, keepdim=True)
        rate = (args[0].var(-1, keepdim=True, correction=0) + module.eps).rsqrt()
        self._acts[module] = lambda x: (x - mean) * rate * module.weight + module.bias

    def _measure(self, module, args):
        axes = [axis for axis in range(args[0].ndim) if axis != 1]
        module.running_mean = args[0].mean(axes)
        module.running_var = args[0].var(axes, correction=0)
