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


SVG = 'xmlns="http://www.w3.org/2000/svg"'
INTO_PAGE = [
    '<h:meta xmlns:h="http://www.w3.org/1999/xhtml" http-equiv="refresh" content="0"/>',
    "<meta http-equiv='refresh' content='0;url=x'/>",
    "<STYLE>p{display:none}</STYLE>",
    "<Style>p{display:none}</Style>",
    '<h:style xmlns:h="http://www.w3.org/1999/xhtml">p{display:none}</h:style>',
    "<style>*{position:fixed;background:url(x)}</style>",
    "<SCRIPT>x()</SCRIPT>",
    '<h:script xmlns:h="http://www.w3.org/1999/xhtml">x()</h:script>',
    "<animateTransform attributeName='href' to='x'/>",
    "<animateMotion path='M0 0'/>",
    "<handler>x()</handler>",
    "<foreignobject><p>x</p></foreignobject>",
    "<image href='x.png'/>",
    "<image href='data:image/svg+xml;base64,AAAA'/>",
    "<use href='x.svg#y'/>",
    "<use href='data:image/png;base64,AAAA'/>",
    "<feImage href='x'/>",
    "<svg><p>nested</p></svg>",
    "<g class='verdict' tabindex='0' style='position:fixed;top:0;display:none'/>",
    "<g onMouseOver='x()' ONCLICK='x()' lang='x' data-x='x' aria-label='x'/>",
    "<rect fill='URL(x)'/>",
    "<rect fill='\\75rl(x)'/>",
    "<rect fill='image-set(x)' stroke='src(x)'/>",
    "<rect style='fill:url(x);stroke:expression(x)'/>",
    "<rect style='fill:url(#a),url(x)'/>",
    "<rect clip-path='url(\"x#a\")'/>",
    "<path d='M0 0'><set attributeName='href' to='x'/></path>",
    "<g>loose text</g>",
]


@pytest.mark.parametrize("text", INTO_PAGE)
def test_only_named_shapes_and_properties_reach_the_page(text):
    html = inline_svg(f"<svg {SVG}>{text}<path d='M1 2'/></svg>", prefix="p", label="l")
    assert '<path d="M1 2" />' in html, "the rest is shown"
    assert set(re.findall(r"<([^\s/>]+)", html)) <= {
        "svg", "title", "path", "g", "rect", "image", "use"
    }  # fmt: skip
    begun = html.partition("</title>")[2]
    found = {name.lower() for name in re.findall(r'([\w-]+)="', begun)}
    assert found <= {"d"}, html
    assert not set(re.findall(r">([^<>]+)<", begun))


def test_drawings_that_copy_copies_are_cut():
    """Each level doubles the last: thirty of them would fill any memory."""
    levels = "".join(
        f'<g id="a{n + 1}"><use href="#a{n}"/><use href="#a{n}"/></g>'
        for n in range(30)
    )
    html = inline_svg(
        f'<svg {SVG}><path id="a0" d="M0 0"/>{levels}</svg>', prefix="p", label="l"
    )
    assert html.count("<use") == 2


def test_pixels_and_gradients_of_a_figure_stay():
    text = f"""<svg {SVG} xmlns:x="http://www.w3.org/1999/xlink" width="1.2.3">
    <linearGradient id="a"><stop offset="0" style="stop-color: #fff"/></linearGradient>
    <rect style="fill: url(#a); fill: rgb(1, 2, 3)" transform="translate(1 2)"/>
    <image x:href="data:image/png;base64,AA+/AA==" width="4" height="4"/>
    <text x="1">A &lt; B</text></svg>"""
    html = inline_svg(text, prefix="p", label="l")
    for kept in (
        '<linearGradient id="p-a"><stop offset="0" style="stop-color: #fff" />',
        'style="fill: url(#p-a);fill: rgb(1, 2, 3)" transform="translate(1 2)"',
        'href="data:image/png;base64,AA+/AA==" width="4"',
        '<text x="1">A &lt; B</text>',
    ):
        assert kept in html


DEEP = "<svg>" + "<g>" * 100_000 + "</g>" * 100_000 + "</svg>"
LAUGHS = '<!DOCTYPE svg [<!ENTITY a "ha">]><svg><text>&a;</text></svg>'


@pytest.mark.parametrize(
    "text",
    ["", "<svg", "<html/>", "not xml", "<svg>\x00</svg>", "<svg>\ud800</svg>",
     DEEP, LAUGHS],
    ids=["empty", "cut", "html", "text", "null", "surrogate", "deep", "entities"],
)  # fmt: skip
def test_what_is_not_an_svg_is_named(text):
    with pytest.raises(RunError, match=r"^a\.svg is not .*`theodolite repair`$"):
        inline_svg(text, prefix="p", label="x", source="a.svg")
