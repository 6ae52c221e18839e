"""Every study at QUICK: the verdicts that the README and the errata quote."""

import pytest

from theodolite.studies import catalogue, plan_study, run_study

FAILURES = {
    "training-ends-around-zero",
    "biases-change-nothing",
    "relu-by-polynomial",
    "zero-is-a-minimum",
    "relu-condition-invariant",
    "one-shortcut-is-none",
    "equivalent-with-activations",
    "condition-numbers-meet",
    "index-always-smaller",
    "two-shortcut-loss-invariant",
    "three-shortcut-stuck",
    "two-shortcut-lowest-relu",
    "two-shortcut-higher-rates-relu",
    "errors-are-late-divergence",
}
UNDECIDED = {
    "better-at-every-loss",
    "better-at-another-depth",
    "most-foretold",
    "two-shortcut-trains-widest",
    "two-shortcut-lowest",
    "orthogonal-worsens",
    "one-shortcut-like-orthogonal",
    "two-shortcut-gains-from-depth",
    "other-shortcuts-degrade",
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
