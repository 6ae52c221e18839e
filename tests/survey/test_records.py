"""Surveys as data: JSON both ways, wrong JSON in a sentence, what a screen shows."""

import json
import math
import re
import subprocess
import sys
from dataclasses import replace

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
        ({"format": 99}, "the survey has format 99, wanted format 2: give what"),
        ({"title": 3}, "at title: Expected `str`, got `int`"),
        ({"n_parameters": True}, "at n_parameters: Expected `int`, got `bool`"),
        ({"measured": {}}, "at measured: Expected `array`, got `object`"),
        (
            {"measured": [{"measure": "map", "status": "well"}]},
            "at measured[0].status: Invalid enum value 'well'",
        ),
        ({"blocks": [{"index": 0}]}, "at blocks[0]: Object missing required field"),
        ({"cost": None}, "at cost: Expected `object`, got `null`"),
        (
            {
                "measured": [
                    {"measure": "a", "status": "done", "rows": [{"quantity": []}]}
                ]
            },
            "at measured[0].rows: Expected rows of single values",
        ),
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
    rows = survey.find("forward_rms", block="layers.1")
    assert rows.values().tolist() == [1.8]
    assert not survey.find("nothing")
    assert survey.outcome("tangent").status == "skipped"
    with pytest.raises(UnknownNameError, match="tangent"):
        survey.outcome("tangents")


PRINTED = """\
ResidualNetwork: 19,994 parameters in 4 blocks, norms in batch mode on MADE-UP inputs
✗ The learning rate is above what this landscape bears (rate_over_stable 2.5 ± 0.2 > 1)
✓ The signal keeps its size through the depth (forward_rms 1.8 < 10)
  loss               2.41 ± 0.05
  forward rms        1 → 0.6 over 4 (0.6 to 1.8)
  backward rms       0.002 → 0.004 over 4 (0.001 to 0.004)
  branch/skip gain   0.8 to 1.1
  dead units         0.02 to 0.02
  largest curvature  5 ± 0.05, smallest -0.3 ± 0.02
  stable rate        gd 0.4 ± 0.04, momentum 0.76 ± 0.08, adam 0.008 ± 0.0008, \
rmsprop 0.004 ± 0.00…
  effective depth    0.9 ± 0.02
→ Lower the rate to 0.3 (tried: helped yes)
  UNSUPPORTED layers.1.pool: jacobian cannot differentiate it
  not measured: rates (partial), tangent (skipped), classifier (refused)
  effort 400, 15 s, 120 passes, seed 0"""


def test_a_terminal_shows_findings_before_numbers_in_25_lines():
    assert str(by_hand()) == PRINTED
    assert len(PRINTED.splitlines()) <= 25
    assert max(map(len, PRINTED.splitlines())) == 100


def test_a_survey_is_short_in_a_list_and_says_what_was_checked():
    assert repr(by_hand()).startswith("<Survey of ResidualNetwork: ")
    assert len(repr(by_hand())) < 100
    sound = replace(by_hand(), findings=())
    assert "\n✓ nothing wrong found; checked: map, signal, " in str(sound)
    assert "nothing wrong" not in str(by_hand())


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


@pytest.mark.parametrize("extra", [0, 1, 2])
def test_a_screen_counts_the_unsupported_parts_that_it_leaves_out(extra):
    shown = 2
    survey = replace(by_hand(), unsupported=[f"part {n}" for n in range(shown + extra)])
    text = str(survey)
    assert text.count("UNSUPPORTED part") == shown
    assert (f"… and {extra} more" in text) == (extra > 0)
