"""Every study at QUICK: the verdicts that the README and the errata quote."""

import pytest

from theodolite.studies import catalogue, plan_study, run_study

FAILURES = {
    "bracket-under-the-root",
    "units-not-shortcuts",
    "labels-repeat",
    "rounding-grows",
    "biases-change-nothing",
    "relu-by-polynomial",
    "zero-is-a-minimum",
    "one-shortcut-is-none",
    "equivalent-with-activations",
    "better-at-another-depth",
    "ratio-diverges",
    "linear-optimum-is-singular",
    "two-shortcut-loss-invariant",
    "three-shortcut-stuck",
    "two-shortcut-lowest-relu",
    "two-shortcut-higher-rates-relu",
    "errors-are-late-divergence",
}
UNDECIDED = {
    "better-at-every-loss",
    "index-always-smaller",
    "norms-fall-at-best-rates",
    "most-foretold",
    "two-shortcut-trains-widest",
    "two-shortcut-lowest",
    "orthogonal-worsens",
    "one-shortcut-like-orthogonal",
    "longer-than-four-worse",
    "only-two-gains-below-400",
    "two-shortcut-best-when-deep",
    "only-two-gains-beyond-400",
}


def wanted(claim):
    """Return the verdict that the documents quote."""
    if claim in UNDECIDED:
        return "UNDECIDED"
    return "FAILS" if claim in FAILURES else "HOLDS"


@pytest.mark.slow
@pytest.mark.parametrize("entry", catalogue(), ids=lambda e: e.full_name)
def test_verdicts_at_quick(entry, tmp_path):
    plan = plan_study(entry, scale="quick")
    claims = run_study(plan, root=tmp_path).summary.claims
    assert {c.claim: c.verdict for c in claims} == {
        c.name: wanted(c.name) for c in entry.study.claims
    }
