"""Surveys as data: JSON both ways, wrong JSON in a sentence, what a screen shows."""

import json
import math
import re
import subprocess
import sys

import pytest

import theodolite
from tests.survey.cases import by_hand
from theodolite.core import ConfigError, Rows, RunError, UnknownNameError
from theodolite.survey import Measured, Survey


def test_json_keeps_every_field(tmp_path):
    survey = by_hand()
    survey.to_json(tmp_path / "survey.json")
    read = Survey.from_json(tmp_path / "survey.json")
    assert read.to_dict() == survey.to_dict()
    assert read.findings == survey.findings
    assert read.advice == survey.advice
    assert read.blocks == survey.blocks
    assert read.rows() == survey.rows()


def test_a_file_that_cannot_be_written_is_said_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match=r"cannot write .*: pass another destination"):
        by_hand().to_json(tmp_path / "file" / "survey.json")
    by_hand().to_json(tmp_path / "new" / "survey.json")
    assert (tmp_path / "new" / "survey.json").exists()


def test_what_is_not_finite_stays_known_in_strict_json(tmp_path):
    rows = Rows([{"quantity": "loss", "value": math.inf, "error": math.nan}])
    measured = Measured(measure="signal", status="done", rows=rows)
    assert measured.rows[0] == {
        "quantity": "loss",
        "value": None,
        "error": None,
        "nonfinite": "inf",
    }
    survey = Survey(title="x", n_parameters=1, blocks=(), measured=(measured,))
    survey.to_json(tmp_path / "survey.json")
    json.loads(
        (tmp_path / "survey.json").read_text(),
        parse_constant=lambda name: pytest.fail(f"{name} is no JSON"),
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 99}, "has schema 99, wanted 1"),
        ({"title": 3}, "the survey.title is 3, wanted text"),
        ({"n_parameters": True}, "n_parameters is True, wanted a whole number"),
        ({"measured": {}}, "measured is {}, wanted a list"),
        ({"measured": [{"measure": "map", "status": "well"}]}, "wanted one of done"),
        ({"blocks": [{"index": 0}]}, "blocks[0].name is missing"),
        ({"cost": None}, "cost is None, wanted an object"),
    ],
)
def test_wrong_json_is_one_sentence(change, said):
    content = {**by_hand().to_dict(), **change}
    with pytest.raises(ConfigError, match=re.escape(said)):
        Survey.from_dict(content)


@pytest.mark.parametrize("text", ["", "[1]", "nonsense", '{"a": 1}'])
def test_a_file_that_is_no_survey_is_one_sentence(tmp_path, text):
    (tmp_path / "file.json").write_text(text)
    with pytest.raises(ConfigError, match="to_json"):
        Survey.from_json(tmp_path / "file.json")


def test_rows_are_found_by_labels():
    survey = by_hand()
    found = survey.find("forward_rms", block="layers.1")
    assert found.values().tolist() == [1.8]
    assert not survey.find("nothing")
    assert survey.outcome("tangent").status == "skipped"
    with pytest.raises(UnknownNameError, match="tangent"):
        survey.outcome("tangents")


def test_a_terminal_shows_findings_before_numbers_in_25_lines():
    lines = str(by_hand()).splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 100
    assert "MADE-UP" in lines[0]
    assert lines[1].startswith("✗ The learning rate is above")
    text = "\n".join(lines)
    assert "5 ± 0.05" in text
    assert "UNSUPPORTED layers.1.pool" in text
    assert "tangent (skipped, 4 min)" in text


def test_a_notebook_escapes_what_others_wrote():
    survey = Survey(
        title="<script>alert(1)</script>", n_parameters=1, blocks=(), measured=()
    )
    assert "<script>" not in survey._repr_html_()
    assert "5 ± 0.05" in by_hand()._repr_html_()


def test_the_room_is_a_function_at_the_root_and_loads_no_torch():
    code = (
        "import sys, theodolite\n"
        "from theodolite.survey import Survey\n"
        "assert callable(theodolite.survey) and theodolite.survey.Survey is Survey\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = theodolite.nothing
