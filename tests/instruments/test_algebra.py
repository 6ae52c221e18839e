"""Sums, multiples, compositions and blocks of operators against dense matrices."""

from functools import cache

import numpy as np
import pytest
import torch
from scipy.sparse.linalg import aslinearoperator, cg, eigsh
from torch import nn

from tests.cases import CASES
from tests.instruments.agreement import cut, near
from tests.instruments.test_preservation import portrait
from theodolite.core import MeasurementError, Status, UnknownNameError
from theodolite.instruments import (
    GaussNewton,
    Hessian,
    Identity,
    Jacobian,
    MatrixOperator,
    TangentKernel,
    by_block,
    condition,
    diagonal,
    extreme_eigenvalues,
    index,
    memory_forecast,
    spectral_density,
    spectrum,
    trace,
)
from theodolite.instruments.operators.rounding_noise import noise_norm

BY_NAME = {case.name: case for case in CASES}


def given(name="in_place_relu", **settings):
    """Return operators on one model: two norm modes, Gauss-Newton and Jacobian."""
    model, batch, loss = BY_NAME[name].make()
    shared = {"loss": loss, **settings}
    return (
        Hessian(model, batch, norm_mode="batch", **shared),
        Hessian(model, cut(batch, 2), norm_mode="eval", **shared),
        GaussNewton(model, batch, norm_mode="batch", **shared),
        Jacobian(model, batch, norm_mode="batch"),
    )


@pytest.fixture(scope="module")
def operators():
    return given()


@pytest.fixture(scope="module")
def matrices(operators):
    return tuple(operator.dense() for operator in operators)


# One and all, in the words of the matrices.
SYMMETRIC = """2 * H; H * 2; -H; H / 2; np.float32(2) * H; H + 0.1 * eye; H + E; H - E;
E - 3 * G + H; H - H; -(H - G) / 4; J.T @ J; H @ H; H @ G @ H; H @ G + (H @ G).T"""
OTHERS = """H @ G; (2 * H) @ (G - E); (H @ G).T; (H @ G - E).T; J.T; (3 * J) @ H"""
SYMMETRIC, OTHERS = (
    [one.strip() for one in text.split(";")] for text in (SYMMETRIC, OTHERS)
)


def value(words, H, E, G, J, eye):
    return eval(words, {"np": np, "H": H, "E": E, "G": G, "J": J, "eye": eye})


@pytest.mark.parametrize("name", [*SYMMETRIC, *OTHERS])
def test_an_expression_is_that_of_the_matrices(name, operators, matrices):
    made = value(name, *operators, Identity(operators[0]))
    wanted = value(name, *matrices, np.eye(len(matrices[0])))
    vector = torch.randn(wanted.shape[1], dtype=torch.float64)
    assert made.shape == wanted.shape
    assert made.symmetric is (name in SYMMETRIC)
    scale = max(1e-3, np.abs(wanted).max())
    for found, exact in (
        (made @ vector, wanted @ vector.numpy()),
        (made.T @ made.matvec(vector), wanted.T @ wanted @ vector.numpy()),
        (made.matvecs(torch.stack([vector] * 9)), [wanted @ vector.numpy()] * 9),
        ((made @ vector).numpy() @ made, wanted.T @ wanted @ vector.numpy()),
    ):
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-10 * scale)
    # As if written once more, of the transposes.
    near(made.T.T @ vector, made @ vector, rtol=1e-12)


def test_transposes_are_recognised_by_how_they_are_written():
    drawn = torch.randn(3, 3, dtype=torch.float64)
    a, b = MatrixOperator(drawn), MatrixOperator(drawn.T)
    assert (a + a.T).symmetric
    assert (a @ a.T).symmetric
    assert (2 * a - a.T @ a + 2 * a.T).symmetric
    assert not (a + b).symmetric  # equal numbers, unknown to us
    assert not (a @ a + a.T).symmetric
    assert not (a @ b + a @ b + (a @ b).T).symmetric
    assert not (2 * a + a.T).symmetric


def test_scipy_takes_operators_without_a_conversion(operators, matrices):
    (H, _, G, J), (h, _, g, j) = operators, matrices
    start = np.ones(len(h))
    largest = eigsh(H, k=1, which="LA", v0=start)[0][0]
    assert largest == pytest.approx(np.linalg.eigvalsh(h)[-1], rel=1e-10)
    damped = G + 0.5 * Identity(G)
    solved, failed = cg(damped, start, rtol=1e-13)
    assert failed == 0
    near(solved, np.linalg.solve(g + 0.5 * np.eye(len(g)), start), rtol=1e-9)
    wrapped = aslinearoperator(J)
    near(wrapped.rmatmat(np.eye(len(j))), j.T)
    near(wrapped.matmat(start[:, None]), j @ start[:, None])
    assert wrapped.dtype == H.dtype == np.float64
    assert H.torch_dtype is torch.float64


def test_products_return_the_kind_that_came(operators, matrices):
    (H, _, _, J), (h, _, _, j) = operators, matrices
    shapes = dict(H.layout)
    parts = [torch.randn(shape, dtype=torch.float64) for shape in shapes.values()]
    flat = np.concatenate([part.numpy().ravel() for part in parts])
    products = H @ parts
    assert [type(products), type(H @ tuple(parts))] == [list, tuple]
    assert [tuple(part.shape) for part in products] == list(shapes.values())
    near(np.concatenate([part.numpy().ravel() for part in products]), h @ flat)
    named = H @ {"1.weight": parts[2]}
    assert list(named) == list(shapes)
    near(named["4.weight"].reshape(-1), h[24:48, 20:22] @ parts[2].numpy())
    columns = H @ [torch.stack([part, 2 * part], -1) for part in parts]
    near(columns[0][..., 1], 2 * products[0])
    near(J @ parts, j @ flat)
    assert isinstance(H @ flat, np.ndarray)
    assert isinstance(H @ torch.from_numpy(flat), torch.Tensor)
    for wrong, words in (
        (parts[1:], "5 parts came, wanted are 6"),
        ([*parts[:-1], parts[0]], "has shape"),
        ([1.0] * 6, "came as a float"),
        ({"1.weigh": parts[1]}, "unknown parameter '1.weigh'"),
    ):
        with pytest.raises((MeasurementError, UnknownNameError), match=words):
            H @ wrong
    with pytest.raises(MeasurementError, match="have no parameters"):
        J.T @ parts
    with pytest.raises(TypeError):
        H @ "vector"


@pytest.mark.parametrize("micro_batch", [None, 4])
def test_blocks_by_names(micro_batch, matrices):
    H, E, G, J = given(micro_batch=micro_batch)
    h, e, g, j = matrices
    spots = {"0.weight": range(18), "1.weight": range(20, 22), "4.bias": range(48, 51)}
    rows, columns = ["4.bias", "0.weight"], "1.weight"
    down, across = [*spots["4.bias"], *spots["0.weight"]], [*spots["1.weight"]]
    near(H[rows, columns].dense(), h[np.ix_(down, across)])
    near(H[rows, columns].T.dense(), h[np.ix_(across, down)])
    near(G["1.weight", rows].dense(), g[np.ix_(across, down)])
    near(H[rows].dense(), h[np.ix_(down, down)])
    near(H[:, columns].dense(), h[:, across])
    near((H - 2 * E)[rows, columns].dense(), (h - 2 * e)[np.ix_(down, across)])
    near((H @ G)[rows, columns].dense(), (h @ g)[np.ix_(down, across)])
    near(H[rows]["4.bias", "0.weight"].dense(), h[48:51, :18])
    near(J[:, columns].dense(), j[:, across])
    near(J.T[columns, :].dense(), j[:, across].T)
    damped = (H + MatrixOperator(torch.eye(51).double()))["1.weight", "1.weight"]
    near(damped.dense(), (h + np.eye(51))[20:22, 20:22])
    assert H[rows].symmetric
    assert (H[rows, columns] @ H[columns, rows]).symmetric
    assert not H[rows, columns].symmetric
    for key, words in (
        ("4.bia", "unknown parameter '4.bia'"),
        (["4.bias", "4.bias"], "each parameter once"),
        (3, "named by int"),
    ):
        with pytest.raises((MeasurementError, UnknownNameError), match=words):
            H[key]
    with pytest.raises(MeasurementError, match=r"rows .* are no parameters"):
        J["1.weight"]


def other(**changed):
    model, batch, loss = BY_NAME["in_place_relu"].make(
        dtype=changed.pop("dtype", torch.float64)
    )
    return Hessian(model, batch, loss=loss, norm_mode="batch", **changed)


@pytest.mark.parametrize(
    ("slip", "words"),
    [
        (lambda H: H + 1, r"0\.1 \* Identity\(operator\)"),
        (lambda H: 1 - H, "unsupported operand"),
        (lambda H: H + np.eye(51), "ndarray cannot be added"),
        (lambda H: H * H, "by @"),
        (lambda H: H * float("nan"), "by nan: pass a finite number"),
        (lambda H: H / 0, "divided by 0"),
        (lambda H: H + other(params=["1.weight"]), r"shape \(2, 2\) cannot be added"),
        (
            lambda H: H[["1.weight", "4.bias"]] + H[["4.bias", "1.weight"]],
            r"another order \(1.weight beside 4.bias\)",
        ),
        (lambda H: H["4.bias"] @ other(params=["1.weight"]), "cannot be composed"),
        (lambda H: H + other(dtype=torch.float32), "float32 on cpu cannot be added"),
        (lambda H: Identity(H["4.bias", "1.weight"]), "has no one order"),
    ],
)
def test_operands_that_do_not_fit_get_one_sentence(operators, slip, words):
    with pytest.raises((MeasurementError, TypeError), match=words) as said:
        slip(operators[0])
    assert "\n" not in str(said.value)


def test_python_sums_operators(operators, matrices):
    near(sum(operators[:3]).dense(), sum(matrices[:3]))


READINGS = {
    trace: lambda r, m: (r.trace, np.trace(m), r.trace_error),
    diagonal: lambda r, m: (r.diagonal, np.diagonal(m), r.diagonal_error),
    spectrum: lambda r, m: (
        r.eigenvalues, np.linalg.eigvalsh(m)[::-1], r.eigenvalue_error),
    extreme_eigenvalues: lambda r, m: (
        r.eigenvalues, np.linalg.eigvalsh(m)[-1:], r.errors),
}  # fmt: skip


@cache
def combinations(dtype):
    """The second is zero but for rounding, of terms as large as ever."""
    model, batch, loss = BY_NAME["in_place_relu"].make(dtype=dtype)
    H = Hessian(model, batch, loss=loss, norm_mode="batch")
    G = GaussNewton(model, batch, loss=loss, norm_mode="eval")
    split = Hessian(model, cut(batch, 2), loss=loss, norm_mode="full")
    return [H - 2 * G + 0.1 * Identity(H), H - split, H @ H]


@cache
def exact_combinations():
    return [wide.dense() for wide in combinations(torch.float64)]


@pytest.mark.parametrize(
    ("measure", "dtype"),
    [*((one, torch.float32) for one in READINGS), (spectrum, torch.float64),
     (extreme_eigenvalues, torch.float64)],
)  # fmt: skip
def test_readings_of_combinations_have_errors_that_cover(measure, dtype):
    for combined, exact in zip(combinations(dtype), exact_combinations(), strict=True):
        before = combined.passes
        reading = measure(combined)
        found, wanted, error = READINGS[measure](reading, exact)
        # Each at 95 % confidence.
        assert np.mean(np.abs(found - wanted) <= error + 1e-14) > 0.9, combined.title
        assert np.max(error) < (1e-4 if dtype is torch.float32 else 1e-11)
        assert reading.cost.passes == combined.passes - before > len(combined.parts)
        assert reading.method.startswith(combined.title)


def test_errors_are_those_of_the_terms_where_they_cancel():
    model, batch, loss = BY_NAME["in_place_relu"].make()
    H = Hessian(model, batch, loss=loss, norm_mode="eval")
    same = H + 1e3 * Identity(H) - 1e3 * Identity(H)
    exact, reading = np.diagonal(H.dense()), diagonal(same)
    off = np.abs(reading.diagonal - exact)
    assert off.max() > 1e-14  # a rounding of 1000, and many of an entry
    assert np.mean(off <= reading.diagonal_error) > 0.9
    assert reading.diagonal_error.max() < 1e-11


def test_a_reading_names_the_norm_modes_of_all_operands(operators):
    H, E, G, _ = operators
    reading = trace(H - 2 * E)
    assert reading.method == "Hessian (batch) - 2 Hessian (eval), dense"
    assert reading.norm_mode == "batch"
    assert (H - E).partition == (6, 2, 4)
    assert (H - G).partition == (6,)
    assert (H - G).title == "Hessian - Gauss–Newton"


def test_every_instrument_takes_a_combination(operators, matrices):
    (H, E, *_), (h, e, *_) = operators, matrices
    made, values = H - E, np.linalg.eigvalsh(h - e)
    blocks = by_block(trace, made)
    near(blocks.stack("trace").sum(), np.trace(h - e))
    assert index(made).index == pytest.approx((values < -1e-9).mean())
    assert spectral_density(made).nodes.max() == pytest.approx(values[-1])
    assert condition(made, quantile=0.9).largest == pytest.approx(abs(values).max())
    assert memory_forecast(made).parameters == 51
    found = extreme_eigenvalues(made, k=2, method="products", max_matvecs=200)
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.eigenvalues, values[:-3:-1], rtol=1e-6)
    for measure in (trace, diagonal, extreme_eigenvalues, spectral_density, spectrum):
        with pytest.raises(
            MeasurementError, match=r"Hessian @ Hessian.* not symmetric"
        ):
            measure(H @ E)


def test_an_inverse_states_its_residual(operators, matrices):
    (H, _, G, _), (_, _, g, _) = operators, matrices
    damped, eye = G + 0.5 * Identity(G), np.eye(len(g))
    vector = np.random.default_rng(0).normal(size=len(g))
    inverse = damped.inverse()
    near(inverse @ vector, np.linalg.solve(g + 0.5 * eye, vector), rtol=1e-9)
    assert inverse.residual <= 1e-10
    assert inverse.status is Status.CONVERGED
    near((inverse @ damped) @ vector, vector, rtol=1e-8)
    solution = inverse.solve(torch.from_numpy(vector))
    rest = vector - (g + 0.5 * eye) @ solution.vector.numpy()
    stated = np.linalg.norm(rest) / np.linalg.norm(vector)
    assert solution.residual == pytest.approx(stated, rel=1e-3)
    parts = [torch.ones(shape, dtype=torch.float64) for _, shape in H.layout]
    assert isinstance(inverse @ parts, list)
    few = damped.inverse(max_matvecs=3)
    with pytest.warns(RuntimeWarning, match="reached a residual of .* after 3"):
        rough = few @ vector
    assert few.status is Status.MAX_MATVECS
    rest = vector - (g + 0.5 * eye) @ rough
    stated = np.linalg.norm(rest) / np.linalg.norm(vector)
    assert few.residual == pytest.approx(stated, rel=1e-10)
    with pytest.raises(MeasurementError, match="up to a residual"):
        trace(inverse)
    assert damped.passes > 0


@pytest.mark.parametrize(
    ("write", "kind"),
    [
        (lambda H, G, J: H, "indefinite"),
        (lambda H, G, J: G, "singular"),
        (lambda H, G, J: J.T @ J, "singular"),
        (lambda H, G, J: -Identity(H), "indefinite"),
    ],
)
def test_what_has_no_inverse_is_refused(operators, write, kind):
    H, _, G, J = operators
    made = write(H, G, J)
    # Also for a vector in its range, on which products alone show nothing.
    for vector in (np.ones(51), made @ np.ones(51)):
        with pytest.raises(MeasurementError, match=f"{kind}.*add damping") as said:
            made.inverse() @ vector
        assert "\n" not in str(said.value)
    with pytest.raises(MeasurementError, match="pass a symmetric operator"):
        (H @ G).inverse()


def test_combinations_leave_the_model_as_found():
    model, batch, loss = BY_NAME["in_place_relu"].make()
    model.eval()
    before = portrait(model)
    H, E = (
        Hessian(model, batch, loss=loss, norm_mode=mode) for mode in ("batch", "eval")
    )
    made = H - E @ H
    with made.together():
        made @ torch.ones(51, dtype=torch.float64)
    (H @ H + Identity(H)).inverse() @ np.ones(51)
    trace(made + made.T)
    assert portrait(model) == before


def test_a_combination_follows_the_model():
    layer = nn.Linear(2, 1, bias=False).double()
    x = torch.randn(4, 2).double()
    H = Hessian(layer, x, loss=lambda model, batch: model(batch).pow(4).mean())
    twice = 2 * H - H @ H
    before = twice @ np.ones(2)
    with torch.no_grad():
        layer.weight.mul_(2)
    h = H.dense()
    near(twice @ np.ones(2), (2 * h - h @ h) @ np.ones(2))
    assert np.abs(twice @ np.ones(2) - before).max() > 1e-3


def kernel_of(model, batch, loss):
    return TangentKernel(Jacobian(model, batch, norm_mode="eval"))


@pytest.mark.parametrize(
    "make",
    [
        lambda *given: Hessian(*given[:2], loss=given[2], norm_mode="eval"),
        lambda *given: 2 * Hessian(*given[:2], loss=given[2], norm_mode="eval"),
        kernel_of,
    ],
)
def test_rounding_is_measured_again_when_the_model_has_changed(make):
    model, batch, loss = BY_NAME["in_place_relu"].make(dtype=torch.float32)
    operator = make(model, batch, loss)
    before = noise_norm(operator)
    assert 0 < before == noise_norm(operator)  # measured once
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)
    operator @ torch.ones(operator.shape[1])  # which meets the change
    assert noise_norm(operator) != before
    assert noise_norm(operator) == noise_norm(make(model, batch, loss))
