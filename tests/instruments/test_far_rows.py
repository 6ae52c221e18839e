"""Rows that reach beyond what a card's products of matrices count, cut into pieces."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from theodolite.instruments.operators import vectors as sums
from theodolite.instruments.operators.vectors import normal_vector, sign_vector


@pytest.fixture
def narrow(monkeypatch):
    """Have everything count as far, cut seven columns at a time."""
    monkeypatch.setattr(sums, "_far", lambda rows: True)
    monkeypatch.setattr(sums, "_ON_GPU", 7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_pieces_give_the_whole(narrow, dtype):
    made = torch.Generator().manual_seed(0)
    rows, others, vector = (
        torch.randn(shape, generator=made, dtype=dtype)
        for shape in ((3, 40), (2, 40), (40,))
    )
    exact = {"rtol": 0.0, "atol": 200 * torch.finfo(dtype).eps}
    assert_close(sums.products(rows, vector).to(dtype), rows @ vector, **exact)
    assert_close(sums.inner(rows, others).to(dtype), rows @ others.T, **exact)
    assert_close(sums.combined(others[:, :3], rows), others[:, :3] @ rows, **exact)
    assert_close(sums.combined(others[0, :3], rows), others[0, :3] @ rows, **exact)
    left = vector.clone()
    found = sums.take_out(left, rows)
    assert_close(left, vector - rows.T @ found.to(dtype), **exact)


def test_pieces_are_copies_of_their_own(narrow):
    rows = torch.arange(60.0).reshape(3, 20)
    parts = list(sums.stretches(rows, 7))
    assert_close(torch.cat(parts, 1), rows, rtol=0, atol=0)
    assert all(part.is_contiguous() for part in parts)


def test_only_cards_are_cut():
    assert not sums._far(torch.zeros(1, 1).expand(3, 2**31))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_more_places_than_32_bits_count():
    """Three billion numbers in two rows, which plain products do not reach."""
    rows = torch.zeros(2, 1_500_000_000, device="cuda")
    rows[0, 7], rows[1, 1_499_999_999] = 2.0, 3.0
    vector = torch.zeros(1_500_000_000, device="cuda")
    vector[7], vector[1_499_999_999] = 1.0, 1.0
    assert sums.products(rows, vector).tolist() == [2.0, 3.0]
    assert float(sums.combined(torch.ones(1, 2, device="cuda"), rows).sum()) == 5.0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_long_vectors_are_a_cards_own():
    """Drawn there in no time, the same for the same seed, and of the right spread."""
    operator = SimpleNamespace(
        shape=(2**27, 2**27), torch_dtype=torch.float32, device=torch.device("cuda")
    )
    for draw in (normal_vector, sign_vector):
        first, again, other = (
            draw(operator, np.random.default_rng(seed)) for seed in (0, 0, 1)
        )
        assert torch.equal(first, again)
        assert not torch.equal(first, other)
        assert abs(float(first.mean())) < 1e-3
        assert float(first.square().mean()) == pytest.approx(1.0, abs=1e-3)
