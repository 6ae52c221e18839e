"""What a reader sees beside a verdict, from the declaration to `show` and the page."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.command import theodolite
from tests.studies import tiny
from theodolite.core import (
    Alive,
    ConfigError,
    Grade,
    Kind,
    PredictedAndMeasured,
    ReadAs,
    Rows,
    above,
    below,
    inside,
    mean,
    measured,
    readings,
    survival,
)
from theodolite.report import write_report
from theodolite.studies import find, plan_study, run_study

LOW = inside(mean(measured("y")), below(1))
HIGH = inside(mean(measured("y")), above(1))


def measure(config, cell):
    """Return the readings of a line; the loss of the first network does not fall."""
    trial = cell["trial"]
    losses = (1.0, 2.0 if trial == 0 else 0.5)
    named = [("loss", step, loss) for step, loss in enumerate(losses)]
    named.append(("y", 1, 2.0 + 0.01 * trial))
    return Rows(
        {"quantity": q, "step": s, "value": v, "error": 0.0} for q, s, v in named
    )


def claim(name, test, **more):
    return replace(tiny.STUDY.claims[0], name=name, test=test, **more)


CLAIMS = (
    *tiny.STUDY.claims,
    claim(
        "two-readings",
        readings(
            ReadAs("as drawn", "The line as drawn.", "Figure 1", HIGH),
            ReadAs("upside down", "The line from above.", "ours", LOW),
        ),
        departures=("digits in place of photographs",),
    ),
    claim("stable", inside(survival(), above(0.99)), sizes=()),
    claim("unseen", inside(mean(measured("z")), above(0))),
    claim("loose", LOW, kind=Kind.ERRATUM, printed="a", corrected="b",
          grade=Grade.LOOSE),
)  # fmt: skip
STUDY = replace(
    tiny.STUDY,
    measure=measure,
    claims=CLAIMS,
    alive=Alive(by=("trial",), loss="loss"),
    paper_size={"n_seeds": 7},
)


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setattr(tiny, "STUDY", STUDY)
    tiny.install(monkeypatch)
    plan = plan_study(find("line"), scale="quick")
    return run_study(plan, root=tmp_path, jobs=0, figure_formats=["svg"]).summary


def test_verdicts_carry_their_words(run):
    verdicts = {one.claim: one for one in run.claims}
    assert {name: (str(one.verdict), one.words) for name, one in verdicts.items()} == {
        "rises": ("HOLDS", ["shortened"]),
        "meets": ("HOLDS", []),  # no chance has a part in it
        "two-readings": ("UNDECIDED", ["depends on the reading", "shortened"]),
        "stable": ("FAILS", []),  # no size matters to it
        "unseen": ("NOT RUN", []),
        "loose": ("FAILS", ["shortened"]),
    }
    assert verdicts["rises"].shortened == "seeds 4 of 7"
    assert verdicts["rises"].deciding.n == 3
    assert verdicts["rises"].ruling.died == "1 of 4 runs died (1 not below its start)"


def test_show_prints_them(run, tmp_path):
    said = theodolite("show", tiny.NAME, "--out", tmp_path).stdout
    for line in (
        r"UNDECIDED two-readings \(Figure 1\)  \[depends on the reading\]  \[short",
        r"HOLDS under \"as drawn\" \(.*, but FAILS under \"upside down\" \(",
        r"reading as drawn: HOLDS\. The line as drawn\. \(Figure 1\)",
        r"departs from the paper: digits in place of photographs",
        r"shortened: seeds 4 of 7",
        r"1 of 4 runs died \(1 not below its start\)",
        r"NOT RUN   unseen",
        r"loose \(Figure 1, erratum\)  \[loose, confirmed\]  \[shortened\]",
    ):
        assert re.search(line, said), line
    assert theodolite("list", "--out", tmp_path).stdout.splitlines()[-1] == (
        "5 claims: 2 hold, 1 fail, 1 undecided, 1 not run; of them 1 "
        "dependent on the reading, 2 shortened; 1 of 1 errata confirmed (1 of them "
        "loose)"
    )


def test_the_page_shows_them(run, tmp_path):
    front = write_report(tmp_path)
    html = "".join(one.read_text() for one in front.parent.glob("report*.html"))
    for words in (
        '<span class="badge tag">Depends on the reading</span>',
        '<span class="badge tag">Shortened</span>',
        "<dt>Shortened</dt><dd>seeds 4 of 7</dd>",
        "<dt>Departs</dt><dd>digits in place of photographs</dd>",
        "<dd>1 of 4 runs died (1 not below its start)</dd>",
        "<dt>Reading</dt><dd>The line from above. (ours)</dd>\n"
        '<dd><span class="word fails">FAILS</span>: upside down</dd>',
        '<article class="claim not-run"',
        "Erratum (loose), confirmed",
        "1 claim depends on how the sentence is read. 2 verdicts rest on runs smaller",
    ):
        assert words in html, words


def test_the_page_on_studies_says_how_to_declare_them():
    page = (Path(__file__).parents[2] / "docs" / "your_study.md").read_text()
    space = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, space)
    claims = (space["read_twice"], space["stable"])
    study = replace(space["STUDY"], claims=claims, alive=space["ALIVE"],
                    paper_size={"n_seeds": 1000})  # fmt: skip
    assert study.smaller(study.presets["paper"].to_dict()) == {
        "n_seeds": "seeds 256 of 1000"
    }
    rows = Rows(
        {"quantity": q, "gain": 2, "trial": t, "step": s, "value": v + 0.01 * t}
        for t in range(40)
        for s, q, v in ((0, "loss", 2), (9, "loss", 1), (9, "growth", -0.2),
                        (9, "typical", 0.9))
    )  # fmt: skip
    both = PredictedAndMeasured(Rows(), rows)
    read_twice, stable = (claim.rule(both) for claim in study.claims)
    assert read_twice.judged.because.startswith('depends on the reading: HOLDS under "')
    assert read_twice.died == "0 of 40 runs died"
    assert stable.outcome == "HOLDS"


def test_sizes_are_those_of_the_paper_where_it_says_them():
    config = STUDY.presets["quick"].to_dict()
    assert tiny.STUDY.smaller(config) == {"n_seeds": "seeds 4 of 5"}
    assert tiny.STUDY.smaller(tiny.STUDY.presets["paper"].to_dict()) == {}
    few = replace(tiny.STUDY, paper_size={"n_seeds": 1, "slope": 3})
    assert few.smaller(config) == {"slope": "slope 2 of 3"}
    assert replace(tiny.STUDY, paper_size={"n_seeds": None}).smaller(config) == {}
    assert replace(tiny.STUDY, paper_size=None).smaller(config) == {}
    assert tiny.STUDY.smaller({"depths": [2, 4]}) == {}, "no setting of the paper's"
    with pytest.raises(ConfigError, match=r"names \['epochs'\]"):
        replace(tiny.STUDY, paper_size={"epochs": 3})
