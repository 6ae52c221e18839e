"""The benchmark of large models, on one that is tiny."""

import json

import numpy as np
import pytest
import torch
from bench import large_model
from bench.gpt2 import Config, build, next_token_loss
from scipy.sparse.linalg import LinearOperator, eigsh

TINY = ["--tiny", "--device", "cpu", "--sequence", "6", "--tol", "1e-2"]


@pytest.fixture(scope="module")
def row(tmp_path_factory):
    out = tmp_path_factory.mktemp("rows")
    given = [*TINY, "--probes", "6", "--basis", "host", "--out", str(out)]
    return json.loads(large_model.main(given).read_text())


def plain_product(model, batch, vector):
    """Multiply the Hessian by double backward, in float64."""
    params = list(model.parameters())
    loss = next_token_loss(model(batch[0]), batch[1])
    first = torch.autograd.grad(loss, params, create_graph=True)
    flat = torch.cat([part.reshape(-1) for part in first])
    second = torch.autograd.grad(flat @ torch.as_tensor(vector), params)
    return torch.cat([part.reshape(-1) for part in second]).numpy()


def test_the_eigenvalue_is_that_of_plain_double_backward(row):
    asked = large_model.options(TINY)
    config = Config.read(asked.config)
    model = build(config, device="cpu", seed=0).double()
    batch = large_model.tokens(config, asked)
    size = row["parameters"]
    operator = LinearOperator(
        (size, size), matvec=lambda v: plain_product(model, batch, v), dtype=float
    )
    start = np.random.default_rng(0).normal(size=size)
    exact = eigsh(operator, k=1, which="LA", tol=1e-5, v0=start)[0][0]
    found = row["largest_eigenvalue"]
    assert found["status"] == "converged"
    assert found["residual"] < 1e-2
    assert abs(found["value"] - exact) <= found["error"]
    assert found["method"].endswith("basis on the host")


def test_a_row_says_what_was_measured_and_what_it_took(row):
    assert row["parameters"] == Config(**row["config"]).parameters
    assert row["forecast"]["sentence"].startswith(f"{row['parameters']:,} parameters")
    assert row["device"].startswith("cpu")
    assert row["trace"]["low"] < row["trace"]["value"] < row["trace"]["high"]
    for part in ("largest_eigenvalue", "trace", "product"):
        assert row[part]["seconds"] > 0
        assert row[part]["host_peak_gib"] > 0


def test_the_large_config_has_one_point_three_billion_parameters():
    path = large_model.HERE / "configs" / "gpt2_1300m.json"
    config = Config.read(path)
    assert 1.3e9 < config.parameters < 1.32e9
    assert config.n_embd % config.n_head == 0


@torch.no_grad()
def test_no_place_sees_what_comes_after_it():
    config = Config.read(large_model.HERE / "configs" / "gpt2_tiny.json")
    model = build(config, device="cpu", seed=1)
    ids = torch.arange(8)[None]
    other = ids.clone()
    other[0, 5:] = 60
    torch.testing.assert_close(model(ids)[:, :5], model(other)[:, :5])
    assert float((model(ids) - model(other))[:, 5:].abs().max()) > 1e-4
