"""A benchmark that cannot do what its command line asks says so in one sentence."""

import json

import pytest
from bench import cuda, gpu_rows, large_model

TINY = ["--device", "cpu", "--tiny"]
SIZES = {"n_layer": 1, "n_head": 2, "n_embd": 8, "vocab_size": 9, "n_positions": 4}


def ended(main, *given):
    """Return the sentence that a command ends with."""
    with pytest.raises(SystemExit) as caught:
        main(list(map(str, given)))
    said = caught.value.code
    assert isinstance(said, str), "a code without words"
    assert "\n" not in said
    return said


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--only", "residul"], "unknown network 'residul': did you mean 'residual'?"),
        (["--ways", "nope"], "unknown way 'nope'"),
        (["--batches", "0"], "--batches is 0: pass a whole number from 1 up"),
        (["--device", "moon"], "the device 'moon': pass --device cuda or cpu"),
        (["--device", "meta"], "the device 'meta': pass --device cuda or cpu"),
    ],
)
def test_products_that_cannot_be_taken(tmp_path, given, words):
    out = tmp_path / "rows"
    assert words in ended(cuda.main, *TINY, "--out", out, *given)
    assert not out.exists()


def test_places_that_hold_no_results(tmp_path):
    taken = tmp_path / "taken"
    taken.touch()
    for main in (cuda.main, large_model.main):
        assert "no place for results" in ended(main, *TINY, "--out", taken)
    gather = ["--out", tmp_path, "--gather"]
    assert "is a folder" in ended(cuda.main, *gather, tmp_path)
    assert "no rows lie in" in ended(cuda.main, *gather, tmp_path / "result.json")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--device", "moon"], "the device 'moon': pass --device cuda or cpu"),
        (["--basis", "moon"], "unknown place of a basis 'moon'"),
        (["--basis", "shared"], "this process is alone"),
        (["--vectors", "0"], "--vectors is 0: pass a whole number from 1 up"),
        (["--sketch", "-3"], "--sketch is -3: pass a whole number from 0 up"),
        (["--sequence", "0"], "--sequence is 0: pass a whole number from 1 up"),
        (["--tol", "nan"], "--tol is nan: pass a number above 0"),
    ],
)
def test_large_models_that_cannot_be_measured(tmp_path, given, words):
    assert words in ended(large_model.main, *TINY, "--out", tmp_path, *given)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "No such file"),
        ("{", "no config of GPT-2"),
        ("[]", "it holds no names"),
        (json.dumps({**SIZES, "n_head": 3}), "3 heads do not divide 8"),
        (json.dumps({**SIZES, "n_layer": "x"}), "n_layer is 'x'"),
        (json.dumps({"n_layer": 1}), "'n_head' is missing"),
    ],
)
def test_configs_that_are_none(tmp_path, text, words):
    path = tmp_path / "config.json"
    if text is not None:
        path.write_text(text)
    given = ["--device", "cpu", "--out", tmp_path, "--config", path]
    said = ended(large_model.main, *given)
    assert words in said
    assert "pass a JSON file such as" in said


def test_where_no_card_is_it_is_said_what_to_try(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_rows.torch.cuda, "is_available", lambda: False)
    message = ended(
        lambda _: gpu_rows.write_rows("gpu_memory", lambda: iter(()), tmp_path)
    )
    assert message.endswith("none is here: run it where one is")
    for main in (cuda.main, large_model.main):
        said = ended(main, "--device", "cuda", "--out", tmp_path)
        assert "none is here: " in said
        assert "--device cpu" in said
