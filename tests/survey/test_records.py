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
ResidualNetwork: 19,994 parameters in 4 blocks, norms in batch mode on MADE-UP
  inputs
✗ The learning rate is above what this landscape bears [rate-too-large]: rate
  over stable rate 2.5 ± 0.2, above 1
✓ The signal keeps its size through the depth [signal-kept]: forward signal 1.8,
  below 10
→ Lower the rate to 0.3 (tried: it helped)
  loss               2.41 ± 0.05
  stable rate        momentum 0.76 ± 0.076 (in use 0.5)
  forward rms        1 → 0.6 over 4 blocks (0.6 to 1.8)
  backward rms       0.002 → 0.004 over 4 blocks (0.001 to 0.004)
  branch/skip gain   0.8 to 1.1
  dead units         2 %
  largest curvature  5 ± 0.05, smallest -0.3 ± 0.02
  unsupported: layers.1.pool: jacobian cannot differentiate it
  not measured: rates (stopped early), tangent (needs more effort), classifier
    (does not apply)
  effort 400, 15 s, 120 passes, seed 0"""


def test_a_terminal_shows_findings_before_numbers():
    assert str(by_hand()) == PRINTED


def crowded():
    """Return a survey with more findings, advice and unsupported layers than fit."""
    one = by_hand()
    finding = replace(one.findings[0], title="A long title, " * 6 + "with a number")
    return replace(
        one,
        title="a.very.long.name" * 9,
        findings=tuple(replace(finding, rule=f"rule-{n}") for n in range(30)),
        advice=one.advice * 12,
        unsupported=tuple(f"part {n} of the network" for n in range(9)),
        settings={"n_batches": 7},
    )


def test_a_crowded_survey_fits_a_screen_and_cuts_no_number():
    lines = str(crowded()).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "2.5 ± 0.2, above 1" in str(crowded())
    assert "more findings: .print(full=True)" in str(crowded())
    assert "more pieces of advice: .print(full=True)" in str(crowded())
    assert "part 0 of the network; and 8 more, see .unsupported" in str(crowded())
    shown = sum(line.startswith("✗") for line in lines)
    assert f"… and {30 - shown} more findings" in str(crowded())


def test_everything_is_printed_in_full(capsys):
    crowded().print(full=True)
    told = capsys.readouterr().out
    assert all(f"[rule-{n}]" in told for n in range(30))
    assert all(f"part {n} of" in told for n in range(9))
    for words in (
        "group['lr'] = 0.3",
        "Steps overshoot where it is steepest.",
        "source: classical: a quadratic diverges above 2/λmax (proved)",
        "tangent needs more effort: it takes 24 gradients or more: give effort=400",
    ):
        assert words in told
    by_hand().print()
    assert capsys.readouterr().out == f"{PRINTED}\n"


def test_a_number_whose_error_bar_includes_zero_is_not_resolved():
    rows = [
        {"quantity": "largest_eigenvalue", "value": 84.0, "error": 49.0, "rank": 0},
        {"quantity": "loss", "value": -6.3e-15, "error": 3e-6},
    ]
    for row in rows:
        row |= {"n_samples": 16, "of_samples": 128}
    shown = str(with_rows("curvature", rows))
    assert "not resolved (0 ± 3e-06) on 16 of 128 samples" in shown
    assert "84 ± 49 on 16 of 128 samples" in shown


def with_rows(measure, rows, **settings):
    outcome = Measured(measure=measure, status="done", rows=Rows(rows))
    return Survey(
        title="net", n_parameters=1, blocks=(), measured=(outcome,), settings=settings
    )


TRIALS = [
    {"quantity": "trial_loss", "value": loss, "error": 0.0, "rate": 0.5 * factor,
     "factor": factor, "step": step}
    for factor, after in ((1.0, 0.9), (0.1, 1.5), (10.0, math.inf))
    for step, loss in ((0, 2.25), (10, after))
]  # fmt: skip


def test_trial_losses_and_the_rate_in_use_are_told_beside_the_stable_one():
    shown = str(with_rows("checks", TRIALS, optimizer="SGD"))
    assert (
        "loss 2.25 → 1.5 (rate 0.05), 0.9 (rate 0.5, in use), inf (rate 5)\n" in shown
    )
    assert "in use" not in str(with_rows("checks", TRIALS))
    rows = [
        {"quantity": "stable_rate", "value": 0.2, "error": 0.01, "optimizer": "gd"},
        {"quantity": "rate_in_use", "value": 0.5, "error": 0.0, "optimizer": "gd"},
        {"quantity": "rate_over_stable", "value": 2.5, "error": 0.1, "optimizer": "gd"},
    ]
    told = "gradient descent 0.2 ± 0.01 (in use 0.5, 2.5 times as large)"
    assert f"stable rate  {told}\n" in str(with_rows("rates", rows))


def test_symptoms_are_told_under_their_cause():
    cause, symptom = by_hand().findings
    text = str(replace(by_hand(), findings=(replace(cause, symptoms=(symptom,)),)))
    assert f"above 1\n    symptoms: {symptom.title}\n" in text
    assert symptom.title not in str(replace(by_hand(), findings=(cause,)))


@pytest.mark.parametrize("status", ["interrupted", "out of time"])
def test_an_aborted_survey_says_so_first_and_names_what_did_not_run(status):
    survey = by_hand()
    late = tuple(replace(one, status=status) for one in survey.measured[-2:])
    aborted = replace(survey, measured=(*survey.measured[:-2], *late), findings=())
    lines = str(replace(aborted, inputs="")).splitlines()
    assert lines[1] == "! INCOMPLETE, aborted: no result of tangent, classifier"
    assert lines[2].startswith("✓ nothing wrong found so far; checked: map, signal")
    assert repr(aborted).endswith("no finding, incomplete; print it>")


def test_a_survey_is_short_in_a_list_and_says_what_was_checked():
    assert repr(by_hand()) == "<Survey of ResidualNetwork: 1 sick, 1 good; print it>"
    sound = replace(by_hand(), findings=())
    assert "\n✓ nothing wrong found; checked: map, signal, " in str(sound)
    assert "nothing wrong" not in str(by_hand())


def test_a_notebook_escapes_what_others_wrote():
    survey = Survey(
        title="<script>alert(1)</script>", n_parameters=1, blocks=(), measured=()
    )
    assert "<script>" not in survey._repr_html_()
    page = by_hand()._repr_html_()
    assert "5 ± 0.05" in page
    frame = page.partition("</iframe>")[0]
    assert "&lt;svg" in frame
    assert frame.count("<") == 1  # nothing leaves the frame


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


def test_the_package_has_the_signature_and_the_help_of_its_function():
    code = (
        "import inspect, pydoc, theodolite\n"
        "functions = {'survey', 'compare', 'summary', 'watch'}\n"
        "assert functions <= set(dir(theodolite))\n"
        "assert list(inspect.signature(theodolite.summary).parameters)[0] == 'model'\n"
        "assert 'Survey' in dir(theodolite.survey)\n"
        "told = pydoc.plain(pydoc.render_doc(theodolite.survey))\n"
        "own = inspect.signature(theodolite.survey.survey)\n"
        "assert inspect.signature(theodolite.survey) == own\n"
        "print(told)"
    )
    run = [sys.executable, "-c", code]
    told = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    assert "theodolite.survey - Say what is wrong with a network" in told
    first = told.partition("PACKAGE CONTENTS")[0]
    assert "effort: str | float = 'normal'" in first
    assert "ignore: Names of rules whose findings are left out." in first


def test_a_file_that_is_not_there_is_named_in_a_sentence(tmp_path):
    with pytest.raises(ConfigError, match=r"\(No such file or directory\): check"):
        Survey.from_json(tmp_path / "none.json")
