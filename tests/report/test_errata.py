"""The page of errata says what runs found, and nothing that they did not."""

import re
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest

from theodolite.core import Kind
from theodolite.report import write_errata
from theodolite.report.errata import errata_page
from theodolite.report.finished_runs import judged_runs
from theodolite.studies import catalogue, plan_study, run_study

PAGE = Path(__file__).parents[2] / "docs" / "errata.md"
RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
NUMBER = r"−?[0-9.]+(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"
JUDGED = re.compile(
    rf"^- As (?P<reading>printed|corrected) (?P<verdict>[A-Z]+): (?P<name>.*) = "
    rf"(?P<value>{NUMBER}) \[(?P<low>{NUMBER}|−∞), (?P<high>{NUMBER}|∞)\]",
    re.MULTILINE,
)
HEADING = re.compile(r"^### `([^`]+)`", re.MULTILINE)


def number(text):
    """Read a number as the page writes it."""
    text = text.replace("−", "-").replace("∞", "inf")
    mantissa, _, power = text.partition(" × 10")
    return float(mantissa) * 10.0 ** int(power.translate(RAISED) or 0)


def judged(text):
    """What the page says of each erratum: verdict and numbers, by reading."""
    verdicts = {}
    for part in text.split("\n### ")[1:]:
        name = part.split("`")[1]
        for match in JUDGED.finditer(part):
            numbers = [number(match[key]) for key in ("value", "low", "high")]
            verdicts[name, match["reading"]] = (
                match["verdict"],
                match["name"],
                numbers,
            )
    return verdicts


def agrees(old, new):
    """Whether two readings say the same within the errors that they state."""
    (verdict, name, (a, low_a, high_a)), (other, named, (b, low_b, high_b)) = old, new
    reach = max(a - low_a, high_a - a) + max(b - low_b, high_b - b)
    # The page rounds to four digits or more.
    return (verdict, name) == (other, named) and abs(a - b) <= reach + 1e-3 * abs(a)


def test_the_page_tells_each_erratum_with_its_numbers(runs_of_two_papers):
    runs = runs_of_two_papers
    text = errata_page(runs)
    assert HEADING.findall(text) == ["transposed_block", "sign_of_overlap"]
    first, second = text.split("\n### ")[1:]
    assert "Appendix A, Eq 22. The off-diagonal block" in first
    assert r"- Printed: $H_{kl}=(P_k\Sigma P_l^\top)" in first
    assert r"- Right: $H_{kl}=(Q_k\Sigma Q_l^\top)" in first
    assert (
        "- As printed FAILS: gap of the printed block = 0.8312 [0.8291, 0.8333], error "
        "0.0021; claimed < 1 × 10⁻¹⁰" in first
    )
    assert "- As corrected HOLDS: gap of the corrected block = " in first
    assert "- Computed by `initial_condition` at scale quick" in first
    assert second.startswith("`sign_of_overlap` (false, not confirmed)")
    assert "1 of 1 errata are confirmed (1 false, 0 loose).\n" in text
    assert "0 of 1 errata are confirmed" in text
    (one,) = [c for c in runs[0].summary.claims if c.kind is Kind.ERRATUM]
    for grade, count in (("loose", "(0 false, 1 loose)"), ("reading", "; 1 are wrong")):
        claims = (replace(one, grade=grade),)
        run = replace(runs[0], summary=replace(runs[0].summary, claims=claims))
        assert f"`transposed_block` ({grade})" in errata_page([run])
        assert count in errata_page([run])
    assert "0 of 0 errata" in errata_page([run])


def test_a_loose_erratum_may_be_true_as_printed(runs):
    (one,) = [c for c in runs[0].summary.claims if c.kind is Kind.ERRATUM]
    own = replace(one.own, confirmed=False, outcome="HOLDS")
    for grade, wanted in (("loose", True), ("false", False)):
        assert replace(one, own=own, grade=grade).confirmed is wanted


def test_a_committed_run_is_named(runs):
    (one,) = [c for c in runs[0].summary.claims if c.kind is Kind.ERRATUM]
    resting = replace(one, committed=one.own, rests_on="committed", on="digits")
    run = replace(runs[0], summary=replace(runs[0].summary, claims=(resting,)))
    assert (
        "- Computed by the committed run at paper scale on digits of "
        "`initial_condition` at scale quick; its own rows say FAILS as printed"
    ) in errata_page([run])


def test_the_page_is_written(root, tmp_path):
    path = write_errata(root, tmp_path / "docs" / "errata.md")
    assert path.read_text(encoding="utf-8") == errata_page(judged_runs(root))


def test_readings_that_differ_are_seen(runs):
    text = errata_page(runs)
    verdicts = judged(text)
    assert len(verdicts) == 3
    key = "transposed_block", "printed"
    number = "0.8312 [0.8291, 0.8333]"
    assert number in text
    same = judged(text.replace(number, "0.8322 [0.8301, 0.8343]"))
    other = judged(text.replace(number, "0.8512 [0.8491, 0.8533]"))
    turned = judged(text.replace("printed FAILS", "printed HOLDS"))
    assert agrees(verdicts[key], same[key])
    assert not agrees(verdicts[key], other[key])
    assert not agrees(verdicts[key], turned[key])


def test_the_documented_errata_are_those_of_the_studies():
    claims = [
        claim.name
        for entry in catalogue()
        for claim in entry.study.claims
        if claim.kind is Kind.ERRATUM
    ]
    assert sorted(HEADING.findall(PAGE.read_text())) == sorted(claims), (
        "run `make errata` and read what changed"
    )


@pytest.mark.slow
def test_the_documented_numbers_are_those_of_a_run(quick_root, tmp_path):
    """Every study with an erratum, at the scale of the page."""
    for entry in catalogue():
        if any(claim.kind is Kind.ERRATUM for claim in entry.study.claims):
            run_study(plan_study(entry, scale="quick"), root=quick_root, jobs=0)
            kept = f"runs/{entry.paper.name}/{entry.name}"
            copytree(quick_root / kept, tmp_path / kept)
    committed, new = (
        judged(PAGE.read_text()),
        judged(errata_page(judged_runs(tmp_path))),
    )
    assert set(committed) == set(new)
    assert [key for key in committed if not agrees(committed[key], new[key])] == []
