import pytest

from tests.data.writers import one_sentence
from theodolite.core import DataError, UnknownNameError
from theodolite.data import load

FROM_FOLDER = ["mnist", "fashion-mnist", "cifar10", "cifar100", "imagefolder"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("mnits", "mnist"), ("cifar-10", "cifar10"), ("fashion", "fashion-mnist")],
)
def test_an_unknown_name_gets_a_suggestion(typed, meant):
    with pytest.raises(UnknownNameError, match=f"did you mean '{meant}'"):
        load(typed)


def test_an_unknown_split_is_refused():
    with pytest.raises(DataError, match="'valid', only train, test") as error:
        load("digits", "valid")
    assert one_sentence(error)


@pytest.mark.parametrize("name", FROM_FOLDER)
def test_without_a_folder_the_two_ways_to_name_one_are_told(name):
    with pytest.raises(DataError, match=r"--data DIR.*THEODOLITE_DATA") as error:
        load(name)
    assert name in str(error.value)
    assert one_sentence(error)


@pytest.mark.parametrize("name", FROM_FOLDER)
def test_an_empty_folder_says_what_is_wanted(name, tmp_path):
    with pytest.raises(DataError) as error:
        load(name, folder=tmp_path)
    assert str(tmp_path) in str(error.value)
    assert "in the data folder" in str(error.value)
    assert one_sentence(error)


@pytest.mark.parametrize("by_variable", [True, False])
def test_a_folder_that_is_none_is_named(tmp_path, monkeypatch, by_variable):
    gone = str(tmp_path / "gone")
    if by_variable:
        monkeypatch.setenv("THEODOLITE_DATA", gone)
    with pytest.raises(DataError, match="no folder") as error:
        load("mnist", folder=None if by_variable else gone)
    assert ("THEODOLITE_DATA" in str(error.value)) == by_variable
    assert one_sentence(error)


def test_an_option_of_another_dataset_is_refused():
    with pytest.raises(UnknownNameError, match="option of digits"):
        load("digits", seed=1)
