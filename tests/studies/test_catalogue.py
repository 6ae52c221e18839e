"""Papers and studies are found by name, and without torch."""

import subprocess
import sys
from importlib import import_module

import pytest

from theodolite.core import Kind, UnknownNameError
from theodolite.pages.text import unrenderable
from theodolite.studies import SCALES, catalogue, find, papers, select

ENTRIES = catalogue()


def test_the_first_paper_is_there():
    assert "li2016demystifying" in [paper.name for paper in papers()]
    names = [e.name for e in select("li2016demystifying")]
    assert names[:3] == ["small_weights", "weight_norms_cifar", "weight_norms"]
    assert len(names) == len(set(names)) == 14
    assert select("all") == ENTRIES
    assert find("initial_condition") == find("li2016demystifying/initial_condition")
    assert select("initial_condition") == [find("initial_condition")]


@pytest.mark.parametrize("wrong", ["li2016demistifying", "hessian_at_zer", "nothing"])
def test_a_wrong_name_is_one_line_that_fits_a_screen(wrong):
    for look in (select, find):
        with pytest.raises(UnknownNameError, match="`theodolite list` names") as caught:
            look(wrong)
        assert len(str(caught.value)) < 200
    with pytest.raises(UnknownNameError, match="known: "):
        catalogue(wrong)


def test_a_wrong_name_suggests_the_nearest_and_nothing_far():
    with pytest.raises(UnknownNameError, match="did you mean 'hessian_at_zero'"):
        find("hessian_at_zer")
    with pytest.raises(UnknownNameError, match="did you mean 'li2016demystifying'"):
        select("li2016demistifying")
    nearest = "'weight_norms', 'weight_norms_cifar' or 'weight_norm_growth'"
    with pytest.raises(UnknownNameError, match=f"did you mean {nearest}"):
        find("wieght_norms")
    with pytest.raises(UnknownNameError, match="unknown study 'nothing': `theodolite"):
        find("nothing")


def test_a_paper_where_a_study_is_wanted_names_one():
    with pytest.raises(UnknownNameError, match=r"is a paper .* such as small_weights"):
        find("li2016demystifying")


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


def test_a_study_is_gathered_from_the_modules_of_its_package():
    package = import_module("theodolite_papers.littwin2016loss.path_counts")
    study = package.STUDY
    assert package.__doc__.startswith(f"{study.title}.\n\n")
    assert " ".join(package.__doc__.split("\n\n")[1].split()) == study.summary
    assert study.combine is import_module(f"{package.__name__}.combine").combine
    assert find("spin_glass_field").study.combine is None
