"""Features of classes drawn at random, and what the meter reads of them."""

import pytest
import torch

from theodolite.instruments import CollapseMeter

KEPT, FOLDED = 2**30, 0


def drawn(classes=4, width=7, samples=120, *, spread=0.4, shift=1.0, dtype=None):
    generator = torch.Generator().manual_seed(classes + width)
    draw = {"generator": generator, "dtype": torch.float64}
    means = torch.randn(classes, width, **draw) + shift
    labels = torch.arange(samples) % classes
    labels = labels[torch.randperm(samples, generator=generator)]
    h = means[labels] + spread * torch.randn(samples, width, **draw)
    head = torch.randn(classes, width, **draw), torch.randn(classes, **draw)
    return h.to(dtype or torch.float64), labels, head


def read(h, labels, head=None, *, pieces=1, feature_bytes=KEPT, **settings):
    meter = CollapseMeter(head=head, feature_bytes=feature_bytes, **settings)
    for part, told in zip(h.tensor_split(pieces), labels.tensor_split(pieces)):  # noqa: B905
        meter.update(part, told)
    if meter.folded:
        for part, told in zip(h.tensor_split(pieces), labels.tensor_split(pieces)):  # noqa: B905
            meter.recount(part, told)
    return meter.compute()


def near(reading, wanted, rtol, atol=1e-14):
    for name, value in wanted.items():
        found = getattr(reading, name)
        assert found == pytest.approx(value, rel=rtol, abs=atol), name
