"""One schema of a summary: what is written is read back, what is wrong is named."""

import json
import math
from dataclasses import replace

import pytest

from theodolite.core import (
    Choice,
    Claim,
    Evidence,
    Kind,
    Outcome,
    PredictedAndMeasured,
    Rows,
    RunError,
    SavedVerdict,
    above,
    check_summary,
    count_verdicts,
    decide,
    each,
    every,
    exact,
    inside,
    mean,
    measured,
    our_margin,
    parse_summary,
    predicted,
    some,
    to_strict_json,
)

NARROW = our_margin(0.1, "a tenth is what one would notice")


def rows(centre, spread=0.02):
    return PredictedAndMeasured(
        Rows([{"quantity": "gap", "value": 1e-14, "error": 0.0}]),
        Rows(
            {"quantity": "y", "depth": d, "trial": t, "value": centre + spread * t}
            for d in (2, 4)
            for t in range(3)
        ),
    )


def at(depth):
    return inside(mean(measured("y", depth=depth)), above(0))


CLAIMS = (
    Claim(
        name="grows",
        place="Figure 1",
        statement="y is positive.",
        rival="none",
        test=each("depth", measured("y"), at),
    ),
    Claim(
        name="same",
        place="Figure 2",
        statement="y is one.",
        rival="none",
        test=some(
            inside(mean(measured("y", depth=2)), our_margin(0.1, "ours", centre=1)),
            inside(mean(measured("y", depth=4)), NARROW),
        ),
        choices=(Choice(what="depths 2 and 4", why="none are given"),),
    ),
    Claim(
        name="wrong",
        place="Eq 1",
        statement="y vanishes.",
        rival="none",
        kind=Kind.ERRATUM,
        printed="y = 0",
        corrected="y > 0",
        test=inside(mean(measured("y")), NARROW),
        corrected_test=every(at(2), at(4)),
    ),
    Claim(
        name="exact",
        place="ours",
        statement="Theory and measurement agree.",
        rival="none",
        kind=Kind.BEYOND,
        test=exact(predicted("gap")),
        own_rows_only=True,
    ),
)


def content(evidence):
    return to_strict_json(
        {
            "paper": {
                "name": "p",
                "title": "P",
                "authors": "A",
                "year": 2016,
                "explorer": {"name": "e", "studies": ["s"]},
                "url": "https://example.org/p",
            },
            "study": {"name": "s", "title": "S", "summary": "…"},
            "scale": "smoke",
            "judged": "2026-01-01T00:00:00+00:00",
            "command": "theodolite run p/s",
            "cost": {"wall_s": 1.0, "cpu_s": 2.0, "passes": 3},
            "claims": [decide(claim, evidence).to_dict() for claim in CLAIMS],
            "comparison": [
                {"label": "y", "predicted": math.inf, "measured": 1, "error": None}
            ],
            "figures": [
                {
                    "name": "f",
                    "caption": "",
                    "files": ["figures/f.svg"],
                    "source": "own",
                }
            ],
            "exhibits": [
                {
                    "name": "e",
                    "source": "own",
                    "columns": ["a", "b"],
                    "lines": [[1.5, "x"], [None, True]],
                }
            ],
        }
    )


@pytest.fixture
def summary():
    return check_summary(content(Evidence(rows(1.0))), source="here")


def test_a_summary_is_read_as_it_was_written(summary):
    text = summary.to_text()
    assert parse_summary(text, source="there") == summary
    assert parse_summary(text, source="there").to_text() == text


def test_saved_judgements_decide_by_the_same_leaf():
    for centre in (-1.0, 0.0, 1.0):
        evidence = Evidence(rows(centre))
        saved = check_summary(content(evidence), source="here").claims
        for claim, one in zip(CLAIMS, saved, strict=True):
            ruling = decide(claim, evidence).ruling
            pairs = [(ruling.judged, one.ruling.judged)]
            if ruling.corrected is not None:
                pairs.append((ruling.corrected, one.ruling.corrected))
            for judged, kept in pairs:
                assert kept.deciding.name == judged.deciding.name
                assert kept.deciding.region == judged.deciding.region
                assert len(kept.leaves) == len(judged.leaves)


def test_a_margin_of_ours_says_where_it_turns(summary):
    same, wrong = summary.claims[1:3]
    (first, second) = same.ruling.judged.ours
    assert first is same.deciding
    assert first.margin.startswith("the region [0.9, 1.1] is ours: ours; the number's")
    # Refuted by numbers from -0.1 up: what is not refuted wants a margin so wide.
    (leaf,) = wrong.ruling.judged.ours
    assert leaf.turns_at == leaf.low
    assert second.margin.endswith(f"a margin of {second.turns_at:.3g}")
    assert summary.claims[0].ruling.judged.ours == ()
    assert summary.claims[0].deciding.margin == ""


def test_the_tally_counts_kinds_apart(summary):
    counts = count_verdicts(summary.claims, not_run=2)
    assert counts.claims == dict(zip(Outcome, (2, 0, 0, 2), strict=True))
    assert (counts.total, counts.hanging, counts.errata, counts.confirmed) == (
        4, 1, 1, 1,
    )  # fmt: skip
    assert str(counts) == (
        "4 claims: 2 hold, 0 fail, 0 undecided, 2 not run; of them 1 by a "
        "margin or choice of ours; 1 of 1 errata confirmed; 1 beyond the paper: 1 "
        "hold, 0 fail, 0 undecided"
    )
    short = replace(summary.claims[0], shortened="epochs 2 of 200")
    assert short.words == ["shortened"]
    loose = replace(summary.claims[2], grade="loose")
    read = replace(summary.claims[2], grade="reading")
    assert str(count_verdicts([short, loose, read])) == (
        "1 claim: 1 hold, 0 fail, 0 undecided; of them 1 shortened; 1 of 1 "
        "errata confirmed (1 of them loose); 1 wrong only as we read them"
    )


def test_the_tally_sets_own_rows_beside_committed_ones():
    evidence = Evidence(rows(0.0, 0.2), rows(1.0), "digits")
    summary = check_summary(content(evidence), source="here")
    counts = count_verdicts(summary.claims)
    assert counts.committed == 3, "one has nothing committed"
    assert counts.alone == {"open": 3}
    assert [one.on for one in summary.claims] == ["digits"] * 3 + [""]
    assert str(counts).endswith("; 3 verdicts rest on committed runs")
    assert str(count_verdicts(summary.claims[:1])).endswith(
        "; 1 verdict rests on committed runs"
    )


def test_an_erratum_that_holds_as_printed_is_not_confirmed():
    summary = check_summary(content(Evidence(rows(0.0, 0.001))), source="here")
    wrong: SavedVerdict = summary.claims[2]
    assert wrong.verdict is Outcome.HOLDS
    assert not wrong.confirmed
    assert count_verdicts([wrong]).confirmed == 0


FIRST = ("claims", 0, "own", "judged")


@pytest.mark.parametrize(
    ("way", "value", "words"),
    [
        ((), 3, "x.json holds a int, wanted an object"),
        (("format",), 7, "x.json has format 7, wanted format 1: write it again with"),
        (("format",), None, "x.json has no format number, wanted format 1"),
        (("paper", "year"), "old", "at paper.year: Expected `int`, got `str`"),
        (("cost", "cpu_s"), None, "at cost.cpu_s: Expected `float`, got `null`"),
        (("claims",), {}, "at claims: Expected `array`, got `object`"),
        (
            ("paper", "explorer"),
            {"studies": []},
            "at paper.explorer: Object missing required field `name`",
        ),
        (
            ("exhibits", 0, "lines", 1),
            [1],
            "at exhibits[0]: Expected lines of 2 values, got one of 1",
        ),
        (("exhibits", 0, "lines", 0), [1, [2]], "at exhibits[0].lines[0][1]: Expected"),
        (("exhibits", 0, "source"), "theirs", "at exhibits[0].source: Invalid"),
        (("claims", 0, "kind"), "clam", "at claims[0].kind: Invalid enum value 'clam'"),
        (
            ("claims", 1, "choices", 0),
            {"what": "x"},
            "at claims[1].choices[0]: Object missing required field `why`",
        ),
        (("claims", 0, "rests_on"), "committed", "at claims[0]: Expected the ruling"),
        ((*FIRST, "decider"), 7, "a piece from 0 to 1 as decider, got `7`"),
        (
            (*FIRST, "pieces", 1, "p_holds"),
            "0.1",
            "at claims[0].own.judged.pieces[1].p_holds: Expected `float`, got `str`",
        ),
        ((*FIRST, "pieces", 1, "p_holds"), 10**400, "Number out of range"),
        (
            ("claims", 3, "own", "judged", "region"),
            {},
            "at claims[3].own.judged.region: a region without any end claims nothing",
        ),
        (("claims", 0, "hangs_on_ours"), 1, "Expected `bool`, got `int`"),
        (("figures", 0, "files"), [1], "at figures[0].files[0]: Expected `str`"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_field(way, value, words):
    data = check_summary(content(Evidence(rows(1.0))), source="here").to_dict()
    if way:
        inner = data
        for step in way[:-1]:
            inner = inner[step]
        inner[way[-1]] = value
    else:
        data = value
    with pytest.raises(RunError) as caught:
        parse_summary(json.dumps(data), source="x.json")
    assert words in str(caught.value)
    assert str(caught.value).startswith("x.json ")
    assert "\n" not in str(caught.value)
