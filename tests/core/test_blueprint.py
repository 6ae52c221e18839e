import dataclasses
import json
import math
import pickle
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core import (
    ACTIVATIONS,
    Blueprint,
    ClassifierBlueprint,
    ConfigError,
    ConvolutionLayer,
    Initialisation,
    LayerwiseBlueprint,
    PathBlueprint,
    PreactivationBlueprint,
    ResnetBlueprint,
    ShortcutBlueprint,
    SpinGlassBlueprint,
    SystemBlueprint,
    TheodoliteError,
    TwoBlockBlueprint,
    UnknownNameError,
    column_major,
    normalised_residual,
    parse_activation,
)

BASE = ShortcutBlueprint(width=10, depth=16, shortcut=2)


@given(st.integers(1, 50), st.integers(1, 50))
def test_units_are_whole_or_refused(depth, shortcut):
    if depth % shortcut == 0:
        units = ShortcutBlueprint(width=3, depth=depth, shortcut=shortcut).units
        assert units * shortcut == depth
        return
    with pytest.raises(ConfigError, match="not a multiple") as caught:
        ShortcutBlueprint(width=3, depth=depth, shortcut=shortcut)
    # What the message says to try works.
    advised = int(str(caught.value).rsplit(" ", 1)[1])
    assert ShortcutBlueprint(width=3, depth=advised, shortcut=shortcut).units >= 1


@pytest.mark.parametrize(
    ("changes", "hints"),
    [
        ({"width": 0}, ("width is 0", "whole number")),
        ({"width": -3}, ("width is -3",)),
        ({"width": 2.0}, ("width is 2.0",)),
        ({"width": True}, ("width is True",)),
        ({"depth": "4"}, ("depth is '4'",)),
        ({"depth": 0}, ("depth is 0",)),
        ({"shortcut": 0}, ("shortcut is 0",)),
        ({"depth": 15}, ("depth 15", "shortcut 2", "try depth 14")),
        ({"depth": 1, "shortcut": 3}, ("try depth 3",)),
        ({"pre": "tahn"}, ("unknown activation 'tahn'", "mean 'tanh'")),
        ({"mid": "polynomial"}, ("'polynomial'", "polynomial:1.5,1")),
        ({"post": None}, ("post is None", "pass str")),
        ({"init": "xavir"}, ("unknown init", "mean 'xavier'")),
        ({"init": None}, ("unknown init None", "known: ")),
        ({"init_scale": 0.0}, ("init_scale is 0.0", "positive", "init='zero'")),
        ({"init_scale": -1}, ("init_scale is -1",)),
        ({"init_scale": math.nan}, ("init_scale is nan",)),
        ({"init_scale": math.inf}, ("init_scale is inf",)),
        ({"init_scale": "1"}, ("init_scale is '1'",)),
        ({"skip": "no"}, ("skip is 'no'", "True or False")),
        ({"bias": 1}, ("bias is 1",)),
    ],
)
def test_what_cannot_be_built_is_refused_in_one_sentence(changes, hints):
    with pytest.raises(TheodoliteError) as caught:
        BASE.with_(**changes)
    message = str(caught.value)
    assert all(hint in message for hint in hints), message
    assert "\n" not in message


def test_every_initialisation_and_activation_is_accepted():
    for init in get_args(Initialisation):
        assert BASE.with_(init=init).init == init
    for name in ACTIVATIONS:
        spec = "polynomial:1.5,-1" if name == "polynomial" else name
        for position in ("pre", "mid", "post"):
            assert getattr(BASE.with_(**{position: spec}), position) == spec


def test_linear_means_no_activation_and_no_bias():
    assert BASE.linear
    assert BASE.with_(skip=False).linear
    for changes in ({"pre": "relu"}, {"mid": "relu"}, {"post": "relu"}, {"bias": True}):
        assert not BASE.with_(**changes).linear


def test_blueprints_are_frozen_values():
    same = ShortcutBlueprint(width=10, depth=16, shortcut=2)
    other = BASE.with_(width=11)
    assert {BASE: 1}[same] == 1
    assert other != BASE
    assert (BASE.width, other.width, other.depth) == (10, 11, 16)
    with pytest.raises(dataclasses.FrozenInstanceError):
        BASE.width = 3


KINDS = {
    ShortcutBlueprint: BASE.with_(mid="polynomial:1.5,1", init="xavier", bias=True),
    PreactivationBlueprint: PreactivationBlueprint(depth=8, width=4),
    SpinGlassBlueprint: SpinGlassBlueprint(width=4, mixture={2: 0.25, 3: 0.75}),
    PathBlueprint: PathBlueprint(inputs=3, width=4, depth=5),
    LayerwiseBlueprint: LayerwiseBlueprint(inputs=3, width=4, depth=5, classes=2),
    ClassifierBlueprint: ClassifierBlueprint(
        inputs=(3, 8, 8), width=4, family="convolutional"
    ),
    ResnetBlueprint: ResnetBlueprint(width=4, blocks=(1, 2), added_identity=0.5),
    SystemBlueprint: normalised_residual(inputs=3, widths=(4, 2)),
    TwoBlockBlueprint: TwoBlockBlueprint(width=3, wide=7, added=0.5),
}
# What makes a kind wider whose width is found from its layers.
WIDER = {SystemBlueprint: normalised_residual(inputs=3, widths=(5, 2)).layers}


def test_an_abstract_blueprint_cannot_be_made():
    with pytest.raises(TypeError, match="abstract class Blueprint"):
        Blueprint(width=3, depth=2)


def test_every_kind_is_final_and_has_its_own_name():
    result = Blueprint.__subclasses__()
    kinds = [kind for kind in result if kind.__module__.startswith("theodolite.")]
    assert set(kinds) == set(KINDS)
    assert all(kind.__final__ and not kind.__subclasses__() for kind in kinds)
    assert len({kind.kind for kind in kinds}) == len(kinds)


@pytest.mark.parametrize("plan", KINDS.values(), ids=lambda plan: plan.kind)
def test_kinds_are_values_that_lead_back(plan):
    twin = pickle.loads(pickle.dumps(plan))
    assert (twin, hash(twin)) == (plan, hash(plan))
    settings = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert type(plan)(**settings) == plan
    assert set(settings) == {field.name for field in dataclasses.fields(plan)}
    grown = {"width": plan.width + 1}
    if type(plan) in WIDER:
        grown = {"layers": WIDER[type(plan)]}
    wider = plan.with_(**grown)
    assert type(wider) is type(plan)
    assert wider.parameters > plan.parameters
    assert (wider.units, wider.depth) == (plan.units, plan.depth)
    assert "kind" not in plan.to_dict()


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5)
)
def test_polynomials_keep_their_coefficients(coefficients):
    spec = "polynomial:" + ",".join(map(repr, coefficients))
    assert parse_activation(spec) == ("polynomial", tuple(coefficients))


def test_other_activations_have_no_coefficients():
    for name in set(ACTIVATIONS) - {"polynomial"}:
        assert parse_activation(name) == (name, ())


@pytest.mark.parametrize(
    "spec",
    [
        "polynomial",
        "polynomial:",
        "polynomial:a",
        "polynomial:1,,2",
        "polynomial:1,",
        "polynomial:nan",
        "polynomial:inf,1",
        "tanh:",
        "tanh:1",
        "tanh:a",
        "identity:nan",
    ],
)
def test_coefficients_out_of_place_are_refused(spec):
    with pytest.raises(ConfigError, match="write for instance") as caught:
        parse_activation(spec)
    assert repr(spec) in str(caught.value)


def test_unknown_activations_are_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'relu'"):
        parse_activation("rellu")
    with pytest.raises(UnknownNameError, match="did you mean 'polynomial'"):
        parse_activation("polynom:1")
    with pytest.raises(UnknownNameError, match="unknown activation ''"):
        parse_activation("")
    for spec in (None, 3, np.tanh):
        with pytest.raises(ConfigError, match="pass str"):
            parse_activation(spec)


def test_a_pixel_lies_in_as_many_patches_as_a_stride_lets_it():
    layer = ConvolutionLayer(into=1, out=1, kernel=(3, 2), stride=(2, 1))
    assert layer.overlap == 2 * 2


def test_no_shapes_have_an_empty_order():
    assert column_major([]).tolist() == []
