"""The site: a page an instrument, a verdict a claim, and links that are checked."""

import inspect
import re
import typing
from collections import Counter
from importlib import import_module

import pytest
from handbook import assemble, links, paper_pages, reference
from handbook.gallery import TITLES
from handbook.gallery_pages import page_of, when_numbers_lie
from matplotlib.figure import Figure

from tests.studies.test_quick import REFUTED, TRUE_BUT_LOOSE, wanted
from theodolite import certificates, instruments, paths
from theodolite.core import Reading
from theodolite.studies import catalogue, papers

SECTIONS = ("What it means", "How it is computed", "When it lies")


def reads(function):
    """Say whether a function returns a reading, or a probe that ends in one."""
    returned = inspect.signature(function).return_annotation
    kind = typing.get_origin(returned) or returned
    return isinstance(kind, type) and (
        issubclass(kind, Reading) or kind is instruments.SharpnessProbe
    )


def test_every_instrument_has_a_page():
    """Those that take an operator or a matrix are the same instrument once more."""
    names_found = {
        name
        for package in (instruments, paths, certificates)
        for name, function in inspect.getmembers(package, inspect.isfunction)
        if reads(function) and not name.endswith(("_of", "_of_operator"))
    }
    assert names_found == TITLES.keys()


@pytest.mark.parametrize("name", TITLES)
def test_a_page_says_what_when_and_when_not(name):
    page = page_of(name, import_module(f"handbook.gallery.{name}"))
    places = [page.index(f"## {section}") for section in SECTIONS]
    assert places == sorted(places)
    assert page.startswith(f"# {TITLES[name]}\n")
    assert f"({name}.svg)" in page
    assert f"{name}(" in page or f".{name}," in page, "the plot shows it in use"


def test_warnings_of_all_instruments_are_on_one_page():
    headings = re.findall(r"^## (.*)", when_numbers_lie(), re.MULTILINE)
    assert headings == list(TITLES.values())
    for section in when_numbers_lie().split("\n## ")[1:]:
        assert "\n- " in section, section


@pytest.mark.parametrize("name", ["singular_values", "lesion"])
def test_plots_are_drawn(name):
    """All of them by `make docs`."""
    figure = import_module(f"handbook.gallery.{name}").draw()
    assert isinstance(figure, Figure)
    assert all(axes.has_data() and axes.get_xlabel() for axes in figure.axes)


def test_every_claim_has_the_verdict_of_the_quick_scale():
    kept = paper_pages.kept_verdicts()
    claims = {
        f"{entry.name}/{claim.name}": wanted(entry.name, claim.name)
        for entry in catalogue()
        for claim in entry.study.claims
    }
    outcomes = {name: paper_pages.outcome_of(said[0]) for name, said in kept.items()}
    assert outcomes == claims
    twice = {name for name, said in kept.items() if len(said) == 2}
    assert twice <= REFUTED | TRUE_BUT_LOOSE


def test_the_tally_of_the_readme_is_of_the_kept_verdicts():
    kinds = {
        f"{entry.name}/{claim.name}": str(claim.kind)
        for entry in catalogue()
        for claim in entry.study.claims
    }
    kept = paper_pages.kept_verdicts()
    said = [kept[name][0] for name, kind in kinds.items() if kind == "claim"]
    (tally,) = paper_pages.TALLY.findall(paper_pages.README.read_text())
    outcomes = Counter(map(paper_pages.outcome_of, said))
    assert tally.startswith(f"{len(said)} claims: ")
    words = {"HOLDS": "hold", "FAILS": "fail", "UNDECIDED": "undecided"}
    for outcome, word in {**words, "NOT RUN": "not run"}.items():
        count = outcomes[outcome]
        assert f"{count} {word}" in tally or not count
    beside = {"dependent on the reading": "depends on the reading"}
    for words, word in {**beside, "shortened": "shortened"}.items():
        count = sum(word in one for one in said)
        assert f"{count} {words}" in tally if count else words not in tally


def test_formulas_do_not_break_tables():
    cell = paper_pages._in_a_cell(r"of $|x|$ and $\|W\|$ or a|b")
    assert cell == r"of $\vert x\vert $ and $\Vert W\Vert $ or a\|b"


def test_the_reference_has_all_that_packages_define():
    assert "theodolite.instruments.curvature.traces.trace" in reference.public_names(
        "instruments"
    )
    for package in reference.PACKAGES:
        assert reference.public_names(package), package


def test_the_reference_begins_with_what_is_used_first():
    assert reference.PACKAGES[:2] == ("survey", "instruments")
    pages = [*map(reference.public_names, ("survey", "instruments", "anatomy"))]
    first = [[path.rpartition(".")[2] for path in page[:3]] for page in pages]
    assert first[0] == ["survey", "compare", "watch"]
    assert first[1] == ["Problem", "hessian", "spectrum"]
    assert first[2][0] == "summary"


def test_tables_come_from_the_page_that_is_named():
    page = assemble.hand_written()["how_we_know.md"]
    for source in ("verdicts", "findings", "benchmarks"):
        text = (assemble.ROOT / "docs" / f"{source}.md").read_text()
        (link, *_) = re.findall(rf"\n(\[.*\]\({source}\.md#.*\)\n\n\|.*\n)", page)
        assert link.splitlines()[2] in text
    with pytest.raises(ValueError, match="below #nowhere"):
        assemble.first_table("# Page\n", "nowhere")


def test_each_page_has_one_place_in_the_navigation():
    files = {path.stem for path in (assemble.ROOT / "docs").glob("*.md")}
    placed = " ".join(assemble.SECTIONS.values()).split()
    assert len(placed) == len(set(placed))
    assert set(placed) < files


def test_links_are_those_of_the_site():
    text = assemble.site_links(
        "[a](../ARCHITECTURE.md#words) [b](docs/paths.md) [c](paths.md) "
        "[d](../examples/notebooks/e.ipynb)"
    )
    pages = "[a](architecture.md#words) [b](paths.md) [c](paths.md) "
    assert text == f"{pages}[d](notebooks/e.ipynb)"


def broken_links():
    """Return a sentence for each relative link that leads to no page or picture."""
    pages = assemble.hand_written()
    return [
        f"{name} links to {target}"
        for name, text in sorted(pages.items())
        for target in re.findall(r"\]\(([^)\s#]+)", text)
        if "://" not in target
        and target not in pages
        and target not in assemble.MADE_FROM.values()
        # The build copies notebooks/ from examples/.
        and not any(
            (assemble.ROOT / f / target).is_file() for f in ("docs", "examples")
        )
    ]


def test_links_of_pages_lead_to_pages():
    assert broken_links() == []


def test_a_link_to_a_file_that_is_no_page_is_seen(monkeypatch):
    monkeypatch.delitem(assemble.BESIDE, "SECURITY.md")
    assert broken_links() == ["changelog.md links to SECURITY.md"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('<a href="b.html#there">', []),
        ('<a href="#here"></a><p id="here">', []),
        ('<a href="https://elsewhere.org">', []),
        ('<a href="c.html">', ["a.html leads to c.html"]),
        ('<a href=".">', ["a.html leads to ."]),
        ('<a href="b.html#nowhere">', ["a.html leads to b.html#nowhere"]),
        ('<img src="lost.svg">', ["a.html leads to lost.svg"]),
        (
            '<script src="https://cdn.org/x.js">',
            ["a.html loads https://cdn.org/x.js from the network"],
        ),
    ],
)
def test_a_site_is_checked_as_it_lies_on_disk(body, words, tmp_path):
    (tmp_path / "a.html").write_text(body)
    (tmp_path / "b.html").write_text('<p id="there">')
    assert links.broken_links(tmp_path) == words


@pytest.mark.parametrize("paper", papers(), ids=lambda paper: paper.name)
def test_the_readme_of_a_paper_is_what_its_studies_say(paper):
    kept = (paper_pages._folder(paper) / "README.md").read_text()
    assert kept == paper_pages.readme(paper)
    for entry in catalogue(paper.name):
        for claim in entry.study.claims:
            assert f"`{entry.name}/{claim.name}`" in kept
