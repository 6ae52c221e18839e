"""The benchmark of products on a device runs from end to end, on small networks."""

import json

import pytest
from bench import cuda


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cuda")
    names = ["residual", "language"]
    # Forward over reverse mode takes seconds to load.
    ways = ["theodolite", "double backward", "curvlinops"]
    given = ["--device", "cpu", "--tiny", "--out", str(folder)]
    cuda.main([*given, "--only", *names, "--ways", *ways])
    found = {path.stem: json.loads(path.read_text()) for path in folder.iterdir()}
    return {name: record["rows"] for name, record in found.items()}


def test_a_file_a_network_and_mode(rows):
    assert set(rows) == {"residual_4_batch", "residual_4_eval", "language_4_eval"}


def test_ways_agree_before_they_are_timed(rows):
    for found in rows.values():
        by_way = {row["way"]: row for row in found}
        for name in ("theodolite", "double backward, graph kept"):
            assert by_way[name]["gap"] < 1e-4
            assert by_way[name]["gradients"] > 0


def test_what_is_not_here_is_a_line(rows):
    for row in rows["residual_4_eval"]:
        assert ("gradients" in row) != ("note" in row)
    recorded = [row for row in rows["residual_4_eval"] if "CUDA graph" in row["way"]]
    assert "CUDA is wanted" in recorded[0]["note"]


def test_a_wrong_product_is_not_timed(monkeypatch, tmp_path):
    def wrong(model, data):
        return lambda v: 2 * cuda.ours(model, data)(v)

    monkeypatch.setattr(cuda, "WAYS", {"wrong": wrong})
    given = ["--device", "cpu", "--tiny", "--out", str(tmp_path)]
    cuda.main([*given, "--only", "residual"])
    found = json.loads((tmp_path / "residual_4_eval.json").read_text())["rows"]
    _, row = found  # the gradient comes first
    assert row["note"] == "further off than 1e-03, so not timed"
    assert row["gap"] == pytest.approx(1, rel=1e-3)


def test_it_stops_in_time(tmp_path):
    given = ["--device", "cpu", "--tiny", "--out", str(tmp_path), "--seconds", "0"]
    cuda.main([*given, "--only", "residual"])
    (row,) = json.loads((tmp_path / "residual_4_eval.json").read_text())["rows"]
    assert "time given was over" in row["note"]
