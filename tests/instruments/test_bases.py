"""A basis gives the same numbers wherever it is kept, and says where that was."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.instruments import ranks
from tests.instruments.spectra import operator_with
from theodolite.core import ConfigError, MeasurementError, Reading, UnknownNameError
from theodolite.instruments import (
    MemoryForecast,
    Operator,
    Team,
    condition,
    diagonal,
    extreme_eigenvalues,
    index,
    memory_forecast,
    share_of,
    sharpness_along,
    singular_values,
    spectral_density,
    trace,
)
from theodolite.instruments.operators.vectors import (
    DeviceBasis,
    inner,
    norm,
    products,
    squared_norm,
)
from theodolite.instruments.passes.forecast import IN_FLIGHT
from theodolite.instruments.solvers import basis_on_host
from theodolite.instruments.solvers.basis_on_host import HostBasis
from theodolite.instruments.solvers.basis_over_ranks import SharedBasis

# An odd number of them, so that no slice and no block is like the others.
SPECTRUM = np.r_[50.0, 20, 10, 7, 5, 3, np.linspace(-0.3, 0.3, 95), -4.0, -6.0]
SIZE = len(SPECTRUM)
FEW_ROWS = 18 * SIZE * 8
# None of them a node, where a distribution function jumps.
POINTS = np.linspace(-6.5, 51.3, 16)

READINGS = {
    "extremes": lambda o, **x: extreme_eigenvalues(o, k=3, method="products", **x),
    "restarted": lambda o, **x: extreme_eigenvalues(
        o, k=1, method="products", basis_bytes=FEW_ROWS, stop="value", **x
    ),
    "certified": lambda o, **x: extreme_eigenvalues(
        o, k=2, method="products", chance=0.01, vectors=True, **x
    ),
    "density": lambda o, **x: spectral_density(
        o, n_probes=1, steps=20, grid=POINTS, method="products", **x
    ),
    "trace": lambda o, **x: trace(o, max_matvecs=18, method="products", **x),
    "diagonal": lambda o, **x: diagonal(o, max_matvecs=18, method="products", **x),
}


def numbers(reading):
    """Return all numbers of a reading, eigenvectors up to their sign, less its cost."""
    found = {}
    for name, value in vars(reading).items():
        if isinstance(value, float | np.ndarray):
            found[name] = np.abs(value) if "vectors" in name else np.asarray(value)
    return found


def check_same(found, wanted, *, where):
    assert found.method == f"{wanted.method}, basis {where}"
    assert found.status == wanted.status
    assert found.cost.passes == wanted.cost.passes
    for name, value in numbers(wanted).items():
        np.testing.assert_allclose(
            numbers(found)[name], value, rtol=1e-9, atol=1e-11, err_msg=name
        )


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few columns, of which a row then has many."""
    monkeypatch.setattr(basis_on_host, "_BLOCK_BYTES", 2**12)


@pytest.fixture(scope="module")
def on_device():
    return {name: read(operator_with(SPECTRUM)) for name, read in READINGS.items()}


def filled(basis, rows):
    for place, row in enumerate(rows):
        basis.store(place, row)
    return basis


def two_bases(length=SIZE, *, block_bytes=500):
    """Return the same orthonormal rows on the device and on the host."""
    rows = torch.linalg.qr(torch.randn(length, 9).double()).Q.T.contiguous()
    like = torch.empty(0).double()
    return (
        filled(DeviceBasis(10, length, like), rows),
        filled(HostBasis(10, length, like, block_bytes=block_bytes), rows),
    )


def test_every_operation_is_that_of_rows_on_the_device():
    torch.manual_seed(0)
    device, host = two_bases()
    assert len(list(host.stretches(10**6))) > 10
    exact = {"rtol": 1e-13, "atol": 1e-14}
    for take in ("remove", "remove_twice"):
        first = torch.randn(SIZE).double()
        second = first.clone()
        seen = getattr(device, take)(first, 7), getattr(host, take)(second, 7)
        np.testing.assert_allclose(*seen, **exact)
        torch.testing.assert_close(second, first, **exact)
        assert float((host.rows(7) @ second).abs().max()) < 1e-14
        assert float((host.rows(9) @ second).abs().max()) > 1e-3
    torch.testing.assert_close(host.inner(host), device.inner(device), **exact)
    weights = np.linalg.qr(np.random.default_rng(0).normal(size=(9, 9)))[0][:4]
    both = device.combined(weights), host.combined(weights)
    torch.testing.assert_close(*both, **exact)
    device.rotate(weights)
    host.rotate(weights)
    for place in range(10):
        torch.testing.assert_close(host.row(place), device.row(place), **exact)
    joined = torch.cat(list(host.stretches(3)), dim=1)
    torch.testing.assert_close(joined, device.rows(10), **exact)


def test_what_twice_takes_out_stays_out_however_little_is_left():
    torch.manual_seed(0)
    _, host = two_bases()
    nearly = host.combined(np.ones((1, 9)))[0] + 1e-9 * torch.randn(SIZE).double()
    host.remove_twice(nearly, 9)
    assert float((host.rows(9) @ nearly).abs().max()) < 1e-13 * float(nearly.norm())


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", READINGS)
def test_a_reading_with_its_basis_on_the_host(name, on_device):
    found = READINGS[name](operator_with(SPECTRUM), basis="host")
    check_same(found, on_device[name], where="on the host")


def test_long_vectors_of_float32_are_added_up_without_loss():
    # One after the other, so many numbers lose 5e-4 of the products.
    size = 3 * 2**20
    rows = torch.rand(3, size) + 1
    vector = rows.sum(0)
    exact = rows.double() @ vector.double()
    torch.testing.assert_close(products(rows, vector), exact, rtol=3e-6, atol=0)
    wanted = rows.double() @ rows.double().T
    torch.testing.assert_close(inner(rows, rows), wanted, rtol=3e-6, atol=0)
    assert norm(vector) == pytest.approx(float(vector.double().norm()), rel=1e-7)
    assert squared_norm(vector) == pytest.approx(norm(vector) ** 2, rel=1e-6)
    basis = DeviceBasis(3, size, rows)
    for place, row in enumerate(rows):
        basis.remove_twice(row, place)
        basis.store(place, row / norm(row))
    torch.testing.assert_close(
        basis.inner(basis), torch.eye(3).double(), atol=2e-6, rtol=0
    )


@pytest.mark.usefixtures("small_blocks")
def test_singular_values_with_bases_on_the_host():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh()).double()
    given = {"block": "1", "norm_mode": "eval", "method": "quadrature", "tol": 0.3}
    x = torch.randn(5, 6).double()
    wanted = singular_values(model, x, **given, basis="device")
    found = singular_values(model, x, **given, basis="host")
    assert found.method == f"{wanted.method}, basis on the host"
    assert found.cost.passes == wanted.cost.passes
    for name in ("points", "cdf", "cdf_error", "bound", "rank"):
        both = getattr(found, name), getattr(wanted, name)
        np.testing.assert_allclose(*both, rtol=1e-9, atol=1e-11, err_msg=name)


def parallel(team=None, **settings):
    """Measure a network whose batches a team holds together."""
    given = {"loss": ranks.LOSS, "norm_mode": "full", "team": team}
    model, mine = ranks.network(), share_of(ranks.data(), team)
    found = extreme_eigenvalues(model, mine, **given, method="products", **settings)
    return found, memory_forecast(model, mine, **given)


def _of_two(rank, size, store, out):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=size
    )
    for name, read in READINGS.items():
        found = read(operator_with(SPECTRUM), basis="shared")
        found.save(f"{out}/{name}-{rank}.npz")
    team = Team(True)
    found, told = parallel(team, basis="shared")
    found.save(f"{out}/parallel-{rank}.npz")
    own = SharedBasis(4, SIZE, torch.empty(0).double(), team)
    vector = torch.arange(SIZE).double()
    own.store(2, vector)
    # One of the processes has other bits, as products that nobody adds up may have.
    agreed = own.agreed(vector + rank)
    np.savez(
        f"{out}/own-{rank}.npz",
        bytes=own.device_bytes,
        row=own.row(2).numpy(),
        agreed=agreed.numpy(),
        processes=told.processes,
        free=told.device_free,
    )
    torch.distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_two_processes_share_a_basis(tmp_path, on_device):
    given = str(tmp_path / "store"), str(tmp_path)
    assert ranks.launch(_of_two, *given, size=2) == [0, 0]
    alone, told = parallel()
    assert told.processes == 1
    for name, wanted in {**on_device, "parallel": alone}.items():
        both = [Reading.load(tmp_path / f"{name}-{rank}.npz") for rank in (0, 1)]
        check_same(both[0], wanted, where="over 2 processes")
        for key, value in numbers(both[0]).items():
            np.testing.assert_array_equal(numbers(both[1])[key], value, err_msg=key)
    half = (SIZE + 1) // 2
    for rank in (0, 1):
        own = np.load(tmp_path / f"own-{rank}.npz")
        assert int(own["bytes"]) == 4 * half * 8
        assert own["processes"] == 2
        assert own["free"] == np.load(tmp_path / "own-0.npz")["free"]
        np.testing.assert_array_equal(own["row"], np.arange(SIZE))
        np.testing.assert_array_equal(
            own["agreed"], np.arange(SIZE) + (np.arange(SIZE) >= half)
        )


SOLVERS = [trace, diagonal, spectral_density, extreme_eigenvalues]
SOLVERS += [index, condition]


@pytest.mark.parametrize("solve", SOLVERS)
def test_a_place_that_there_is_not(solve):
    with pytest.raises(UnknownNameError, match="did you mean 'host'"):
        solve(operator_with(SPECTRUM), basis="hots")
    with pytest.raises(ConfigError, match="this process is alone"):
        solve(operator_with(SPECTRUM), basis="shared", method="products")


class Vast(Operator):
    """The identity of an order that no memory holds ten vectors of."""

    symmetric = True
    torch_dtype, device = torch.float32, torch.device("cpu")
    shape = (10**13, 10**13)

    def product(self, vector):
        raise AssertionError("nothing is multiplied before it is known to fit")


@pytest.mark.parametrize("solve", [extreme_eigenvalues, spectral_density, trace])
def test_what_fits_nowhere_is_said_before_anything_is_done(solve):
    with pytest.raises(
        MeasurementError, match=r"GiB free on cpu: .* lower basis_bytes"
    ):
        solve(Vast(), basis_bytes=2**60)


def forecast(**given):
    settings = {
        "parameters": 10,
        "weights": 40,
        "gradient": 40,
        "vectors": 200,
        "graph": 60,
        "check": 0,
        "basis_vectors": 10,
        "basis": 400,
        "device": "cuda:0",
        "device_free": 1000,
        "host_free": 1000,
        "processes": 1,
    }
    return MemoryForecast(**{**settings, **given})


@pytest.mark.parametrize(
    ("given", "fits", "words"),
    [
        ({}, ("device", "host"), "the basis fits on the device"),
        ({"device_free": 700}, ("device", "host"), "the basis fits"),
        ({"device_free": 699}, ("host",), "has to be kept on the host"),
        ({"device_free": 299}, (), "products do not fit"),
        ({"device_free": 699, "host_free": 399}, (), ": pass fewer"),
        (
            {"device_free": 500, "processes": 2},
            ("shared", "host"),
            "shared over 2 processes",
        ),
        ({"device": "cpu", "device_free": 699}, (), ": pass fewer"),
    ],
)
def test_where_a_basis_fits(given, fits, words):
    found = forecast(**given)
    assert found.fits == fits
    assert found.placement == (fits[0] if fits else None)
    assert words in str(found)


def test_the_forecast_of_a_model_counts_what_it_will_hold():
    model = nn.Sequential(nn.Linear(30, 40), nn.Tanh(), nn.Linear(40, 10))
    batch = torch.randn(8, 30), torch.randn(8, 10)
    given = {"loss": nn.MSELoss(), "norm_mode": "eval"}
    found = memory_forecast(model, batch, **given, k=2, ends="largest")
    size = sum(p.numel() for p in model.parameters())
    assert (found.parameters, found.weights) == (size, 4 * size)
    assert found.graph > 0
    # A copy in float64, its vectors in flight and its graph; float64 wants no other.
    assert found.check == 8 * size * (1 + IN_FLIGHT) + 2 * found.graph
    fine = memory_forecast(model.double(), [t.double() for t in batch], **given)
    assert (fine.check, fine.weights) == (0, 8 * size)
    model.float()
    # As many bytes as the forecast says are enough for a search, and one less is not.
    probe = sharpness_along(model, batch, **given, k=2, basis_bytes=found.basis)
    probe(0)
    with pytest.raises(MeasurementError, match="raise basis_bytes"):
        sharpness_along(model, batch, **given, k=2, basis_bytes=found.basis - 1)(0)


@pytest.mark.gpu
def test_a_card_holds_a_block_of_a_basis_on_the_host():
    torch.manual_seed(0)
    like, length = torch.empty(0, device="cuda"), 3_000_000
    device, host = DeviceBasis(9, length, like), HostBasis(9, length, like)
    for place in range(8):
        row = torch.randn(length, device="cuda")
        device.remove_twice(row, place)
        device.store(place, row / row.norm())
        host.store(place, row / row.norm())
    vector = torch.randn(length, device="cuda")
    same = vector.clone()
    wanted = device.remove_twice(vector, 8)
    del device
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    np.testing.assert_allclose(host.remove_twice(same, 8), wanted, atol=1e-5)
    torch.testing.assert_close(same, vector, atol=1e-5, rtol=0)
    assert host.device_bytes == 0
    assert torch.cuda.max_memory_allocated() - before < 2 * 2**28
