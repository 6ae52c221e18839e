"""Formulas as inline SVG."""

import re

import pytest

from theodolite.report import formulas, renderable, unrenderable
from theodolite.report.maths import formula, maths_html
from theodolite.report.prose import to_html, to_plain


def style(html, name):
    return float(re.search(rf"{name}:(-?[0-9.]+)em", html)[1])


@pytest.mark.parametrize(
    "latex",
    [
        r"\mathrm{cond}(H)=\sqrt{\mathrm{cond}(M^\top M)}",
        r"|\lambda|_{\max}/|\lambda|_{(0.1)}",
        r"H_{kl}=(Q_k\Sigma Q_l^\top)\otimes(P_k^\top P_l)",
        r"\lVert x \rVert \le \tfrac12 \iff \bigl(x\bigr) \ge \sqrt2 + \sqrt x",
        r"\left|\frac{a}{b}\right| \in \mathbb{R}^{d\times d}",
        r"\|W\|_F^2, \mathcal{L}, \varepsilon, \hat{y}",
        r"|x|_\infty",
    ],
)
def test_what_the_studies_write_can_be_drawn(latex):
    assert renderable(latex)
    html = maths_html(latex)
    assert 'fill="currentColor"' in html
    assert 'role="img"' in html


@pytest.mark.parametrize("latex", [r"\unknown{x}", "{", "", " ", "日", r"\frac{a}"])
def test_what_cannot_be_drawn_shows_its_source(latex):
    assert not renderable(latex)
    assert str(maths_html(latex)) == f'<code class="latex">{latex}</code>'


def test_the_baseline_is_that_of_the_text():
    flat, deep = formula("x"), formula(r"x_{k_l}")
    assert flat.depth < 5 < deep.depth
    assert style(maths_html(r"x_{k_l}"), "vertical-align") == -round(
        deep.depth / 100, 3
    )
    # The box begins `height` above the baseline, which lies at 0 in the drawing.
    top = float(re.search(r'viewBox="\S+ (\S+) ', maths_html("x"))[1])
    assert top == pytest.approx(-flat.height, abs=0.05)


def test_the_scale_is_that_of_the_text():
    html = maths_html("x")
    _, _, width, tall = map(float, re.search(r'viewBox="([^"]+)"', html)[1].split())
    assert style(html, "height") == pytest.approx(tall / 100, abs=2e-3)
    assert style(html, "width") == pytest.approx(width / 100, abs=2e-3)
    # An x is about half an em high in every text face.
    assert 0.4 < formula("x").height / 100 < 0.55
    assert formula("xx").width > 1.8 * formula("x").width


def test_the_outline_lies_in_its_box():
    drawn = formula(r"\frac{a_g}{b}\sqrt{y}")
    numbers = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", drawn.outline)]
    xs, ys = numbers[::2], numbers[1::2]
    assert min(ys) >= -drawn.height
    assert max(ys) <= drawn.depth
    assert min(xs) >= drawn.left - 0.1
    assert max(xs) <= drawn.left + drawn.width + 0.1
    assert min(ys) < -60  # the fraction rises above the line, y pointing down
    assert max(ys) > 20


def test_bars_keep_their_distance():
    assert formula("|x|").width > formula(r"\left|x\right|").width + 20


def test_repeated_formulas_are_drawn_once():
    assert formula(r"\alpha_7") is formula(r"\alpha_7")


def test_the_source_is_the_label_and_is_escaped():
    assert 'aria-label="a &lt; b &gt; c"' in maths_html("a < b > c")


def test_text_around_formulas_is_escaped():
    html = to_html(r"<b> costs \$5, $x<y$, `a<b`")
    assert html.startswith("&lt;b&gt; costs $5, ")
    assert "<code" in html
    assert "a&lt;b</code>" in html
    assert "<b>" not in html


def test_one_dollar_alone_is_a_dollar():
    assert str(to_html("costs $5")) == "costs $5"


def test_punctuation_stays_with_its_formula():
    assert str(to_html("as ($n$), then")).startswith('as <span class="whole">(<svg')
    assert str(to_html("as ($n$), then")).endswith("</svg>),</span> then")


def test_code_is_not_mathematics():
    assert formulas("`$x$` and $y$") == ["y"]


def test_plain_text_and_lists_of_formulas():
    assert to_plain(r"the $\lambda$ of `H`, \$5") == r"the \lambda of H, $5"
    assert formulas(r"$a$ and $\bad b$") == ["a", r"\bad b"]
    assert unrenderable(["no maths", r"$a$ and $\bad b$"]) == [r"\bad b"]
