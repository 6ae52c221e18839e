"""Where Ray is looked for, how much of it is asked for, and when it is loaded."""

import socket

import pytest

from tests.later import later
from tests.runs.processes import python
from theodolite.core import ConfigError, RunError
from theodolite.runs import RayCluster
from theodolite.runs.executors.ray import connection as ray_connection
from theodolite.runs.executors.ray.connection import checked_address

later("ray", "pip install 'theodolite[ray]'")


def test_an_address_that_does_not_answer_is_told_in_seconds(monkeypatch):
    assert ray_connection._KNOCK_S + ray_connection._ANSWER_S < 15
    monkeypatch.setattr(ray_connection, "_ANSWER_S", 1.0)
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{stranger.getsockname()[1]}"
        with pytest.raises(RunError, match=r"no Ray cluster answers at .* refused"):
            checked_address(place)
        stranger.listen()
        with pytest.raises(RunError, match=r"answers at .*listens, but not as Ray"):
            checked_address(place)
    with pytest.raises(RunError, match="no Ray cluster answers at 'ray://nowhere"):
        checked_address("ray://nowhere.invalid")


def test_a_cluster_that_asks_for_a_token_is_told(monkeypatch):
    """By what Ray raises where a token is wanted and none was given."""
    wrong = (
        "from ray.exceptions import AuthenticationError as wrong; raise wrong('who')"
    )
    monkeypatch.setattr(ray_connection, "_ASK", wrong)
    with socket.socket() as head:
        head.bind(("127.0.0.1", 0))
        head.listen()
        with pytest.raises(RunError, match=r"asks for a token .* RAY_AUTH_MODE=token"):
            checked_address(f"127.0.0.1:{head.getsockname()[1]}")


@pytest.mark.parametrize("address", ["", "host", "host:port", ":6379", "host:99999"])
def test_an_address_that_is_none(address):
    with pytest.raises(ConfigError, match="is not understood: use HOST:PORT"):
        checked_address(address)


@pytest.mark.parametrize(
    "request_",
    [
        {"cpus": 0},
        {"cpus": "x"},
        {"cpus": None},
        {"gpus": -1},
        {"gpus": 1.5},
        {"gpus": float("nan")},
        {"jobs": 0},
        {"jobs": "x"},
        {"jobs": 1.5},
    ],
    ids=str,
)
def test_amounts_that_no_cluster_can_give(request_):
    with pytest.raises(ConfigError, match=r"pass a (whole )?number|try 1 or more"):
        RayCluster(**request_)


@pytest.mark.parametrize("request_", [{"address": 3}, {"initialise": 3}], ids=str)
def test_other_things_than_are_wanted(request_):
    with pytest.raises(ConfigError, match=r" is 3: pass "):
        RayCluster(**request_)


def test_ray_is_loaded_only_when_used():
    code = (
        "import sys, theodolite.runs, theodolite.studies\n"
        "theodolite.runs.RayCluster('1.2.3.4:5')\n"
        "heavy = {'ray', 'tensorboard', 'mlflow', 'wandb', 'torch'}\n"
        "print(heavy & set(sys.modules))"
    )
    assert python(code).stdout == "set()\n"


def test_without_ray_one_sentence_says_how_to_get_it():
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "from theodolite.runs import RayCluster\n"
        "RayCluster().__enter__()"
    )
    assert "pip install 'theodolite[ray]'" in python(code).stderr.splitlines()[-1]
