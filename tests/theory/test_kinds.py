"""Closed forms predict one kind of blueprint, say which, and refuse the others."""

import inspect

import numpy as np
import pytest

from theodolite import theory
from theodolite.core import (
    AffineLayer,
    ConfigError,
    PreactivationBlueprint,
    ShortcutBlueprint,
    SpinGlassBlueprint,
    SystemBlueprint,
)

EYE = np.eye(4)
GIVEN = {
    "x": EYE,
    "y": EYE[::-1],
    "weights": np.ones((8, 4, 4)),
    "moments": theory.moments(EYE, EYE[::-1]),
    "overlap": 0.5,
    "data": EYE,
    "cost": "logistic",
    "inputs": theory.Extent(samples=4, shape=(4,)),
}
# Of the same width and depth as what is predicted, so that nothing else is wrong.
OTHER = PreactivationBlueprint(width=4, depth=8)
PREDICTED = {
    ShortcutBlueprint: ShortcutBlueprint(width=4, depth=8),
    SpinGlassBlueprint: SpinGlassBlueprint(width=4, mixture={2: 0.5, 3: 0.5}),
    SystemBlueprint: SystemBlueprint(inputs=4, layers=(AffineLayer(into=4, out=1),)),
}
# Weights of a kind that does not keep them as one array.
WEIGHTS = {SystemBlueprint: [{"weight": np.ones((1, 4))}]}
PREDICTING = {
    name: getattr(theory, name)
    for name in theory.__all__
    if inspect.isfunction(inspect.unwrap(getattr(theory, name)))
    and "blueprint" in inspect.signature(getattr(theory, name)).parameters
}
pytestmark = pytest.mark.usefixtures("untyped")


def kind_of(name):
    """Return the kind that a function says it predicts."""
    wanted = inspect.signature(inspect.unwrap(PREDICTING[name])).parameters
    return wanted["blueprint"].annotation


def predict(function, blueprint):
    wanted = inspect.signature(function).parameters
    kind = wanted["blueprint"].annotation
    given = GIVEN | {"weights": WEIGHTS.get(kind, GIVEN["weights"])}
    return function(blueprint, **{k: v for k, v in given.items() if k in wanted})


def test_the_functions_are_found():
    assert {"hessian_at_zero", "linear_hessian", "relu_gradient"} <= set(PREDICTING)
    assert len(PREDICTING) >= 10
    assert {kind_of(name) for name in PREDICTING} == set(PREDICTED)


@pytest.mark.parametrize("name", PREDICTING)
def test_a_blueprint_of_another_kind_is_refused_in_one_sentence(name):
    function = PREDICTING[name]
    kind = kind_of(name)
    predict(function, PREDICTED[kind])
    for other in (OTHER, None):
        with pytest.raises(ConfigError) as caught:
            predict(function, other)
        message = str(caught.value)
        assert message.startswith("blueprint is ")
        assert f": pass {kind.__name__}" in message
        assert "\n" not in message


@pytest.mark.parametrize("name", PREDICTING)
def test_the_kind_is_annotated_and_documented(name):
    function = inspect.unwrap(PREDICTING[name])
    kind = kind_of(name)
    assert kind in PREDICTED
    text = function.__doc__.split("Assumes:")[1]
    assert kind.__name__ in text or text.strip().startswith("as ")
