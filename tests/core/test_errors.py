import pickle

import pytest

from theodolite.core import (
    ConfigError,
    DataError,
    MeasurementError,
    RunError,
    TheodoliteError,
    UnknownNameError,
    unknown_name,
)

KINDS = [ConfigError, DataError, MeasurementError, RunError, UnknownNameError]


@pytest.mark.parametrize("kind", KINDS)
def test_errors_share_a_base_print_as_they_are_and_travel(kind):
    error = kind("depth is 0: pass 1")
    assert isinstance(error, TheodoliteError)
    assert str(error) == "depth is 0: pass 1"
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back)) == (kind, str(error))


def test_errors_are_caught_as_the_builtin_they_specialise():
    assert issubclass(ConfigError, ValueError)
    assert issubclass(UnknownNameError, LookupError)
    # A KeyError would print its message in quotes.
    assert not issubclass(UnknownNameError, KeyError)


def test_an_unknown_name_suggests_the_nearest():
    error = unknown_name("study", "condtion", iter(["moments", "condition"]))
    assert isinstance(error, UnknownNameError)
    assert str(error) == (
        "unknown study 'condtion': did you mean 'condition'? known: condition, moments"
    )


def test_a_name_that_begins_alike_is_nearest():
    names = ["li2016demystifying", "littwin2016loss"]
    error = unknown_name("paper", "li2016", names)
    assert "did you mean 'li2016demystifying'?" in str(error)
    assert "did you mean" not in str(unknown_name("paper", "", names))


def test_of_many_names_the_similar_ones_are_listed():
    names = [*(f"other-{n}" for n in range(50)), "dead-units", "twin-units"]
    told = str(unknown_name("rule", "dead-unit", names))
    assert told.startswith("unknown rule 'dead-unit': did you mean 'dead-units'? known")
    assert "known: 52 names, most similar: dead-units, twin-units, other-" in told
    assert told.count(",") == 5


def test_a_name_far_from_all_lists_them():
    assert str(unknown_name("study", "zzz", ["b", "a"])) == (
        "unknown study 'zzz': known: a, b"
    )
    assert str(unknown_name("study", "zzz", [])) == "unknown study 'zzz': known: none"
    assert str(unknown_name("study", None, ["a"])) == "unknown study None: known: a"
    assert "\n" not in str(unknown_name("study", "a\nb", ["c"]))
