"""Several SVG figures in one page."""

import re

import pytest

from theodolite.core import RunError
from theodolite.report.drawings import inline_svg


def ids(html):
    return re.findall(r'\bid="([^"]+)"', html)


def references(html):
    return re.findall(r'href="#([^"]+)"', html) + re.findall(r"url\(#([^)]+)\)", html)


@pytest.fixture
def condition(drawn):
    return drawn["condition"]["condition.svg"].decode()


def test_two_figures_share_no_identifier_and_lose_no_reference(drawn, condition):
    spectrum = drawn["spectrum"]["spectrum.svg"].decode()
    assert set(ids(condition)) & set(ids(spectrum)), "else this test shows nothing"
    one = inline_svg(condition, prefix="one", label="a")
    two = inline_svg(spectrum, prefix="two", label="b")
    same = inline_svg(condition, prefix="three", label="a")
    every = ids(one) + ids(two) + ids(same)
    assert len(every) == len(set(every))
    for html, source in ((one, condition), (two, spectrum), (same, condition)):
        assert len(references(html)) == len(references(source)) > 10
        assert "url(#" in html
        assert set(references(html)) <= set(ids(html))


def test_it_stands_in_a_page(condition):
    html = inline_svg(condition, prefix="p", label="what <it> shows")
    assert html.startswith("<svg ")
    for gone in ("<?xml", "<!DOCTYPE", "metadata", "<style", "http", "xlink", "ns0"):
        assert gone not in html
    assert '<title id="p-title">what &lt;it&gt; shows</title>' in html
    assert 'role="img"' in html
    assert "stroke-linejoin: round" in html, "what the style sheet said is inherited"
    root = html.partition(">")[0]
    assert "max-width:633.6px" in root
    assert not re.search(r'\b(width|height)="', root)


HOSTILE = """<svg xmlns="http://www.w3.org/2000/svg" onload="x()">
<script>x()</script><style>*{fill:url(http://a/b)} p{color:red} @import "http://a"</style>
<a href="http://a"><path d="M0 0"/></a><image href="http://a/b.png"/>
<image href="data:image/png;base64,AAAA"/><foreignObject><p>x</p></foreignObject>
<use href="javascript:x()"/><rect onclick="x()" fill="url(http://a/b)" id="k"/>
</svg>"""


def test_nothing_in_it_runs_loads_or_restyles():
    html = inline_svg(HOSTILE, prefix="p", label="x")
    for gone in ("script", "onload", "onclick", "http", "@import", "foreign", "color:"):
        assert gone not in html
    assert 'href="data:image/png;base64,AAAA"' in html
    assert 'id="p-k"' in html


@pytest.mark.parametrize("text", ["", "<svg", "<html/>", "not xml"])
def test_what_is_not_an_svg_is_named(text):
    with pytest.raises(RunError, match=r"^a\.svg is not .*run the study again"):
        inline_svg(text, prefix="p", label="x", source="a.svg")
