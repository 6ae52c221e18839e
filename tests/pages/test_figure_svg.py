"""Several SVG figures in one page."""

import colorsys
import re

import pytest

from theodolite.core import RunError
from theodolite.pages import SharedSvg, inline_svg
from theodolite.pages.colours import on_dark


def ids(html):
    return re.findall(r'\bid="([^"]+)"', html)


def references(html):
    return re.findall(r'href="#([^"]+)"', html) + re.findall(r"url\(#([^)]+)\)", html)


@pytest.fixture
def condition(drawn):
    return drawn["condition"]["condition.svg"].decode()


def inline(text, **more):
    return inline_svg(text, shared=SharedSvg(), **{"label": "l", **more})


def test_two_figures_share_no_identifier_and_lose_no_reference(drawn, condition):
    spectrum = drawn["spectrum"]["spectrum.svg"].decode()
    assert set(ids(condition)) & set(ids(spectrum)), "else this test shows nothing"
    shared = SharedSvg()
    texts = [condition, spectrum, condition]
    pages = [inline_svg(text, shared=shared, label="a") for text in texts]
    every = [*(name for page in pages for name in ids(page)), *ids(shared.shapes)]
    assert len(every) == len(set(every))
    # A letter is referred to in its word, which stands in the page once.
    words = dict(re.findall(r'<g id="(g-\w+)">(.*?)</g>', shared.shapes))
    for html, source in zip(pages, texts, strict=True):
        whole = re.sub(r'<use href="#(g-\w+)" />', lambda m: words[m[1]], html)
        assert len(references(whole)) == len(references(source)) > 10
        assert len(references(html)) < len(references(source))
        assert "url(#" in html
        assert set(references(html)) <= set(every)


def test_each_shape_and_style_stands_in_the_page_once(condition):
    shared = SharedSvg()
    one = inline_svg(condition, shared=shared, label="a")
    shapes, css = shared.shapes, shared.css
    inline_svg(condition, shared=shared, label="a")
    assert (shared.shapes, shared.css) == (shapes, css)
    assert "style=" not in one.partition(">")[2]
    assert len(one) < len(condition) / 3, "most of a figure is its letters"


def test_places_are_kept_to_a_tenth_of_a_point(condition):
    """What is drawn stays where it was, however few letters say so."""
    shared = SharedSvg()
    html = inline_svg(condition, shared=shared, label="a")

    def lines(text):
        return [
            [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?", d)]
            for d in re.findall(r'<path d="([^"]+)" clip-path', text)
        ]

    before, after = lines(condition), lines(html)
    assert len(before) == len(after) > 5
    for one, other in zip(before, after, strict=True):
        assert one == pytest.approx(other, abs=0.0501)


def test_inks_follow_the_page_and_hues_stay(condition):
    shared = SharedSvg()
    inline_svg(condition, shared=shared, label="a")
    assert "fill:#ffffff;fill:light-dark(#ffffff,#1b1f23)" in shared.css
    ink = re.search(r"stroke:light-dark\((#2b2b2b),(#[0-9a-f]{6})\)", shared.css)
    assert ink[2] > "#c0c0c0", "dark ink is light on a dark page"
    # Every colour keeps a plain value for browsers that know no other.
    assert shared.css.count("light-dark(") == len(
        re.findall(r"(fill|stroke):(#[0-9a-f]{6});\1:light-dark\(\2,", shared.css)
    )


@pytest.mark.parametrize("colour", ["#0072b2", "#d55e00", "#440154", "#000080"])
def test_a_hue_is_seen_on_a_dark_page(colour):
    def hls(text):
        parts = [int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        return colorsys.rgb_to_hls(*parts)

    before, after = hls(colour), hls(on_dark(colour))
    assert abs(before[0] - after[0]) < 0.02
    assert after[1] >= before[1]
    assert after[1] > 0.3


def test_a_scale_of_values_keeps_its_colours():
    cells = "".join(
        f"<path d='M{n} 0z' style='fill: #{10 * n:02x}40{250 - 10 * n:02x}'/>"
        for n in range(1, 20)
    )
    ink = "<path d='M0 0' style='stroke: #000000'/>"
    shared = SharedSvg()
    inline_svg(f"<svg {SVG}>{cells}{ink}</svg>", shared=shared, label="l")
    assert shared.css.count("light-dark") == 1
    few = SharedSvg()
    three = "".join(cells.partition("M4 0z")[:1])[: cells.index("<path d='M4")]
    inline_svg(f"<svg {SVG}>{three}</svg>", shared=few, label="l")
    assert few.css.count("light-dark") == 3


def test_beside_pixels_the_legend_and_what_lies_on_them_stay():
    def css(*parts):
        shared = SharedSvg()
        text = (
            f"<svg {SVG}><clipPath id='c'><path d=''/></clipPath>{''.join(parts)}</svg>"
        )
        inline_svg(text, shared=shared, label="l")
        return shared.css

    image = "<image href='data:image/png;base64,AA=='/>"
    swatch = "<path d='M1 0' style='fill: #bbbbbb'/>"
    label = "<path d='M2 0' style='fill: #2b2b2b'/>"
    cross = (
        "<defs><path id='x' d='M3 0' style='stroke: #222222'/></defs>"
        "<g clip-path='url(#c)'><use href='#x' style='stroke: #222222'/></g>"
    )
    assert css(swatch, label, cross).count("light-dark") == 3
    beside = css(image, swatch, label, cross)
    assert beside.count("light-dark") == 1
    assert "light-dark(#2b2b2b," in beside


def test_it_stands_in_a_page(condition):
    html = inline(condition, label="what <it> shows")
    assert html.startswith("<svg ")
    for gone in ("<?xml", "<!DOCTYPE", "metadata", "<style", "http", "xlink", "ns0"):
        assert gone not in html
    assert '<title id="f-a-title">what &lt;it&gt; shows</title>' in html
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
    html = inline(HOSTILE)
    for gone in ("script", "onload", "onclick", "http", "@import", "foreign", "color:"):
        assert gone not in html
    assert 'href="data:image/png;base64,AAAA"' in html
    assert 'id="f-a-k"' not in html, "nothing refers to it"


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
    html = inline(f"<svg {SVG}>{text}<path d='M1 2'/></svg>")
    assert '<path d="M1 2" />' in html, "the rest is shown"
    assert set(re.findall(r"<([^\s/>]+)", html)) <= {
        "svg", "title", "path", "g", "rect", "image", "use"
    }  # fmt: skip
    begun = html.partition("</title>")[2]
    attributes = {name.lower() for name in re.findall(r'([\w-]+)="', begun)}
    assert attributes <= {"d"}, html
    assert not set(re.findall(r">([^<>]+)<", begun))


def test_drawings_that_copy_copies_are_cut():
    """Each level doubles the last: thirty of them would fill any memory."""
    levels = "".join(
        f'<g id="a{n + 1}"><use href="#a{n}"/><use href="#a{n}"/></g>'
        for n in range(30)
    )
    html = inline(f'<svg {SVG}><path id="a0" d="M0 0"/>{levels}</svg>')
    assert html.count("<use") == 2


def test_pixels_and_gradients_of_a_figure_stay():
    text = f"""<svg {SVG} xmlns:x="http://www.w3.org/1999/xlink" width="1.2.3">
    <linearGradient id="a"><stop offset="0" style="stop-color: #fff"/></linearGradient>
    <rect style="fill: url(#a); fill: rgb(1, 2, 3)" transform="translate(1 2)"/>
    <image x:href="data:image/png;base64,AA+/AA==" width="4" height="4"/>
    <text x="1">A &lt; B</text></svg>"""
    html = inline(text)
    for kept in (
        '<linearGradient id="f-a-0"><stop offset="0" class="d-a" />',
        'style="fill: url(#f-a-0);fill: rgb(1, 2, 3)" transform="translate(1 2)"',
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
        inline(text, source="a.svg")
