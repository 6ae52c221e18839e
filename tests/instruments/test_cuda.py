"""On a CUDA device the same code gives the same numbers."""

import gc

import numpy as np
import pytest
import torch
from bench.cuda_networks import Language, _text

from tests.cases import CASES
from tests.instruments import ranks
from theodolite.instruments import (
    CollapseMeter,
    GaussNewton,
    Hessian,
    classifier_norms,
    collapse,
    hessian,
)
from theodolite.instruments.differentiate import affine_twice as affine_twice

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.mark.parametrize("mode", ["batch", "frozen", "eval"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_dense_hessian(case, mode):
    model, (x, y), loss = case.make()
    there = hessian(model, (x, y), loss=loss, norm_mode=mode)
    model.cuda()
    here = hessian(model, (x.cuda(), y.cuda()), loss=loss, norm_mode=mode)
    scale = np.abs(there.matrix).max()
    np.testing.assert_allclose(here.matrix, there.matrix, atol=1e-10 * scale)
    assert here.asymmetry < 1e-10
    assert next(model.parameters()).is_cuda


@pytest.mark.parametrize("feature_bytes", [2**30, 0])
@pytest.mark.parametrize("mode", ["batch", "full", "frozen", "eval"])
def test_collapse_and_norms(mode, feature_bytes):
    case = next(case for case in CASES if case.name == "conv_bn_resnet")
    model, (x, _), _ = case.make(samples=12)
    y = torch.arange(12) % 3
    given = {"norm_mode": mode, "other": x[:4], "feature_bytes": feature_bytes}
    there = collapse(model, [(x[:6], y[:6]), (x[6:], y[6:])], **given)
    norms = classifier_norms(model, (x, y), norm_mode=mode)
    model.cuda()
    x, y = x.cuda(), y.cuda()
    given["other"] = x[:4]
    here = collapse(model, [(x[:6], y[:6]), (x[6:], y[6:])], **given)
    for name in ("nc1_variability", "nc3_duality", "nc4_disagreement", "nc5_outside"):
        assert getattr(here, name) == pytest.approx(getattr(there, name), rel=1e-9)
    moved = classifier_norms(model, (x, y), norm_mode=mode)
    np.testing.assert_allclose(moved.margins, norms.margins, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(moved.layer_norms, norms.layer_norms, rtol=1e-10)


def test_a_head_and_labels_elsewhere_than_the_features():
    h, y, head = torch.randn(30, 5), torch.arange(30) % 3, torch.randn(3, 5)
    meters = [CollapseMeter(head=head) for _ in range(2)]
    meters[0].update(h, y)
    meters[1].update(h.cuda(), y)
    first, second = (meter.compute(other=h) for meter in meters)
    assert first.nc3_duality == pytest.approx(second.nc3_duality, rel=1e-5)
    assert first.nc5_outside == pytest.approx(second.nc5_outside, rel=1e-5)


@pytest.mark.parametrize("layout", ["torch's own", "channels last", "rows"])
def test_a_line_pulls_back_by_passes_what_its_kernel_does(layout, monkeypatch):
    made = torch.Generator("cuda").manual_seed(0)
    g, x = torch.randn(2, 4096, 16, 8, 8, device="cuda", generator=made)
    g, x = g, x + 3
    if layout == "channels last":
        g, x = (t.to(memory_format=torch.channels_last) for t in (g, x))
    if layout == "rows":
        g, x = (t.permute(0, 2, 3, 1).reshape(-1, 16) for t in (g, x))
    axes = [axis for axis in range(g.ndim) if axis != 1]
    a, centre = torch.randn(16, device="cuda", generator=made), x.mean(axes)
    variance = torch.rand(16, device="cuda", generator=made) + 0.5
    given = (g, x, centre, a, variance, variance.rsqrt())
    wide = [t.double() for t in given]
    assert affine_twice._by_passes(g) == (layout == "torch's own")
    for passes in (True, False):
        monkeypatch.setattr(affine_twice, "_by_passes", lambda _, way=passes: way)
        for mine, exact in zip(
            affine_twice.pulled(*given), affine_twice.pulled(*wide), strict=True
        ):
            torch.testing.assert_close(mine.double(), exact, rtol=1e-4, atol=1e-2)


def launched(target, place, size):
    """Start processes that know no card yet, and wait for them."""
    return ranks.launch(target, str(place), size=size, method="spawn")


@pytest.mark.parametrize("kind", [Hessian, GaussNewton])
def test_what_fits_by_its_tensors_is_not_refused_for_its_graph(kind):
    model = Language(64, 4, 2, 64, 200).cuda()
    batch = tuple(part.cuda() for part in _text(64, 64, 200))
    given = {"loss": torch.nn.CrossEntropyLoss(), "norm_mode": "eval"}
    graph = kind(model, batch, **given).forecast_bytes
    tight = kind(model, batch, **given, graph_bytes=int(0.85 * graph))
    assert tight.forecast_bytes < 0.85 * graph
    gc.collect()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    tight.matvec(torch.ones(tight.shape[1], device="cuda"))
    taken = torch.cuda.max_memory_allocated() - before
    assert 0.75 * tight.forecast_bytes < taken < tight.forecast_bytes


def test_ranks_that_share_a_card(tmp_path):
    assert launched(ranks.on_one_card, tmp_path, 2) == [0, 0]
    model, data = ranks.network(), ranks.data()
    operator = Hessian(model, data, loss=ranks.LOSS, norm_mode="full")
    vector = torch.linspace(-1, 1, operator.shape[1], dtype=torch.float64)
    for rank in range(2):
        found = torch.load(tmp_path / f"card-{rank}")
        torch.testing.assert_close(found, operator @ vector, rtol=1e-9, atol=1e-11)


def test_calls_of_a_team_by_nccl(tmp_path):
    size = torch.cuda.device_count()
    assert launched(ranks.by_nccl, tmp_path, size) == [0] * size
    assert torch.load(tmp_path / "nccl-0").tolist() == [size] * 3
