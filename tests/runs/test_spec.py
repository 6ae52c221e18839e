import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.core import ConfigError
from theodolite.runs import RunSpec

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
)
CONFIGS = st.dictionaries(
    st.text(max_size=6),
    st.recursive(
        LEAVES,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.dictionaries(st.text(max_size=4), inner, max_size=4),
        ),
        max_leaves=12,
    ),
    max_size=5,
)


def spec(config, **rest):
    return RunSpec(**{"paper": "p", "study": "s", "scale": "x"} | rest, config=config)


def respelt(value, rng):
    """Say the same in another way."""
    if isinstance(value, dict):
        items = [(key, respelt(item, rng)) for key, item in value.items()]
        rng.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        return tuple(respelt(item, rng) for item in value)
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return np.int64(value)
    if isinstance(value, float):
        return np.float64(value)
    return value


@settings(max_examples=80, deadline=None)
@given(config=CONFIGS, seed=st.integers(0, 999))
def test_digest_does_not_depend_on_spelling(config, seed):
    same = spec(respelt(config, random.Random(seed)))
    assert same.digest == spec(config).digest
    assert same == spec(config)
    assert RunSpec.from_dict(same.to_dict()) == same


@settings(max_examples=50, deadline=None)
@given(first=CONFIGS, second=CONFIGS)
def test_digests_differ_where_configs_do(first, second):
    assert (spec(first).digest == spec(second).digest) == (
        spec(first).config == spec(second).config and repr_of(first) == repr_of(second)
    )


def repr_of(value):
    """Tell 1, 1.0 and True apart, as the digest does, whatever the key order."""
    if isinstance(value, dict):
        return sorted((key, repr_of(item)) for key, item in value.items())
    if isinstance(value, list):
        return [repr_of(item) for item in value]
    return repr(value)


def test_digest_is_the_same_in_another_process():
    code = (
        "from theodolite.runs import RunSpec; print(RunSpec(paper='p', study='s',"
        "scale='y', config={'names': {'q', 'w', 'e', 'r', 't'}}).digest)"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in (1, 2)
    }
    assert digests == {spec({"names": {"t", "r", "e", "w", "q"}}).digest}


def test_what_counts_and_what_is_a_label():
    base = spec({"a": 1})
    assert len(base.digest) == 12
    assert spec({"a": 1}, scale="paper").digest == base.digest
    assert spec({"a": 1}, device="cuda").digest == base.digest
    assert spec({"a": 1}, revision=2).digest != base.digest
    assert spec({"a": 1}, study="t").digest != base.digest
    assert hash(spec({"a": 1})) == hash(base)


@pytest.mark.parametrize(
    "config",
    [
        {"a": float("nan")},
        {"a": np.array([1.0, np.inf])},
        {"a": object()},
        {"a": {1: "a", "1": "b"}},
    ],
)
def test_what_cannot_be_hashed_is_refused(config):
    with pytest.raises(ConfigError, match="config cannot be saved"):
        spec(config)


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc", "a b"])
def test_a_name_that_is_no_folder_is_refused(name):
    with pytest.raises(ConfigError, match="cannot name a folder"):
        spec({}, paper=name)
