"""Formulas as MathML, and the text around them."""

import re

import pytest

from theodolite.pages import to_plain
from theodolite.pages.text import formula, formulas, maths_html, to_html, unrenderable


@pytest.mark.parametrize(
    "latex",
    [
        r"\mathrm{cond}(H)=\sqrt{\mathrm{cond}(M^\top M)}",
        r"|\lambda|_{\max}/|\lambda|_{(0.1)}",
        r"H_{kl}=(Q_k\Sigma Q_l^\top)\otimes(P_k^\top P_l)",
        r"\lVert x \rVert \le \tfrac12 \iff \bigl(x\bigr) \ge \sqrt2 + \sqrt x",
        r"\left|\frac{a}{b}\right| \in \mathbb{R}^{d\times d}",
        r"\|W\|_F^2, \mathcal{L}, \varepsilon, \hat{y}",
        r"\lim \arg\max_r \epsilon_r, \argmin_x f, \{a\!b\}",
        r"|x|_\infty",
    ],
)
def test_what_the_studies_write_can_be_set(latex):
    assert formula(latex) is not None
    html = maths_html(latex)
    assert html.startswith("<math alttext=")
    assert "\\" not in html.partition(">")[2]


@pytest.mark.parametrize(
    "latex",
    [r"\unknown{x}", "{", "", " ", r"\frac{a}", "x }", r"\text{a<b>c}", "{" * 4000],
)
def test_what_cannot_be_set_shows_its_source(latex):
    assert formula(latex) is None
    assert maths_html(latex).startswith('<code class="latex">')
    assert maths_html(latex).unescape() == f'<code class="latex">{latex}</code>'


@pytest.mark.parametrize(
    "latex",
    [
        r"\href{javascript:x()}{y}",
        r"\text{<script>x()</script>}",
        r"\text{<mi>x</mi>}",
        r"\text{</math><script>x()</script>}",
        r"\color{red}{x}",
        r"\style{position:fixed}{x}",
        r"\class{toolbar}{x}",
    ],
)
def test_a_formula_brings_nothing_but_formulas(latex):
    inside = formula(latex) or ""
    assert set(re.findall(r"<(\w+)", inside)) <= {"mi", "mrow", "mtext", "mstyle", "mo"}
    assert not re.search(r"\b(href|style|class|on\w+)=", inside)


def test_names_are_words_and_bars_stand_close():
    assert formula(r"\mathrm{cond}(H)").startswith("<mi>cond</mi>")
    bars = re.findall(r"<mo[^>]*>[|/]</mo>", formula("|a|/|b|"))
    assert len(bars) == 5
    assert all('lspace="0" rspace="0"' in one for one in bars)
    assert 'form="prefix">−<' in formula("a = -b")
    assert "form" not in formula("a - b") + formula("(a) - b")
    assert "<mo>⟺</mo>" in formula(r"a \iff b")


def test_a_binomial_is_raised_as_a_whole():
    assert re.fullmatch(
        r"<msup><mrow>.*<mfrac.*</mrow><mn>2</mn></msup>",
        formula(r"\binom{p}{k_{1}}^2"),
    )


def test_repeated_formulas_are_set_once():
    assert formula(r"\alpha_7") is formula(r"\alpha_7")


def test_the_source_stands_beside_and_is_escaped():
    assert maths_html('a < b "c"').startswith(
        '<math alttext="a &lt; b &#34;c&#34;"><mi>a</mi><mo>&lt;</mo>'
    )


def test_text_around_formulas_is_escaped():
    html = to_html(r"<b> costs \$5, $x<y$, `a<b`")
    assert html.startswith("&lt;b&gt; costs $5, ")
    assert "<code" in html
    assert "a&lt;b</code>" in html
    assert "<b>" not in html


def test_one_dollar_alone_is_a_dollar():
    assert str(to_html("costs $5")) == "costs $5"


def test_punctuation_stays_with_its_formula():
    assert str(to_html("as ($n$), then")).startswith('as <span class="whole">(<math')
    assert str(to_html("as ($n$), then")).endswith("</math>),</span> then")


@pytest.mark.parametrize(("letters", "whole"), [(23, 1), (24, 1), (25, 0)])
def test_short_code_stays_on_one_line(letters, whole):
    html = str(to_html(f"`{'x' * letters}`"))
    assert html.count(' class="whole"') == whole


def test_code_is_not_mathematics():
    assert formulas("`$x$` and $y$") == ["y"]


def test_plain_text_and_lists_of_formulas():
    assert to_plain(r"the $\lambda$ of `H`, \$5") == r"the \lambda of H, $5"
    assert formulas(r"$a$ and $\bad b$") == ["a", r"\bad b"]
    assert unrenderable(["no maths", r"$a$ and $\bad b$"]) == [r"\bad b"]
