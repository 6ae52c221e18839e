"""Papers and studies are found by name, and without torch."""

import subprocess
import sys

import pytest

from theodolite.core import Kind, UnknownNameError
from theodolite.report import unrenderable
from theodolite.studies import SCALES, catalogue, find, papers, select

ENTRIES = catalogue()


def test_the_first_paper_is_there():
    assert "li2016demystifying" in [paper.name for paper in papers()]
    names = [e.name for e in select("li2016demystifying")]
    assert names[:3] == ["small_weights", "weight_norms_cifar", "weight_norms"]
    assert len(names) == len(set(names)) == 15
    assert select("all") == ENTRIES
    assert find("initial_condition") == find("li2016demystifying/initial_condition")
    assert select("initial_condition") == [find("initial_condition")]


@pytest.mark.parametrize("wrong", ["li2016demistifying", "hessian_at_zer", "nothing"])
def test_a_wrong_name_suggests_a_right_one(wrong):
    for look in (select, find, catalogue):
        with pytest.raises(UnknownNameError, match="known: "):
            look(wrong)
    with pytest.raises(UnknownNameError, match="did you mean 'hessian_at_zero'"):
        find("hessian_at_zer")


def test_a_wrong_name_lists_every_study_once():
    with pytest.raises(UnknownNameError) as caught:
        select("nothing")
    known = str(caught.value).split("known: ")[1].split(", ")
    assert sorted(known) == sorted(
        ["all", *(p.name for p in papers()), *(e.name for e in ENTRIES)]
    )


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.full_name)
def test_every_study_keeps_the_protocol(entry):
    study = entry.study
    assert set(study.presets) == set(SCALES)
    for scale in SCALES:
        config = study.config(scale)
        assert study.config_from(config.to_dict()) == config
        cells = study.cells(config)
        assert len({tuple(sorted(c.items())) for c in cells}) == len(cells)
    names = [claim.name for claim in study.claims]
    assert len(set(names)) == len(names)
    for claim in study.claims:
        assert claim.place
        assert claim.statement
        assert claim.rival
        erratum = claim.kind is Kind.ERRATUM
        assert bool(claim.printed and claim.corrected) == erratum
    texts = [study.summary, *study.departures]
    for claim in study.claims:
        texts += [claim.statement, claim.rival, claim.printed, claim.corrected]
    assert unrenderable(texts) == []


def test_the_catalogue_needs_no_torch():
    code = (
        "import sys\n"
        "from theodolite.studies import catalogue\n"
        "assert [c for e in catalogue() for c in e.study.claims]\n"
        "print([m for m in ('torch', 'matplotlib', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
