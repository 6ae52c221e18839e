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
    "better-at-another-depth",
    "condition-numbers-meet",
    "index-always-smaller",
    "two-shortcut-loss-invariant",
    "three-shortcut-stuck",
    "two-shortcut-lowest-relu",
    "two-shortcut-higher-rates-relu",
    "errors-are-late-divergence",
    "two-shortcut-trains-widest",
}
UNDECIDED = {
    "better-at-every-loss",
    "two-shortcut-lowest",
    "orthogonal-worsens",
    "one-shortcut-like-orthogonal",
    "two-shortcut-gains-from-depth",
    "other-shortcuts-degrade",
    "two-shortcut-best-when-deep",
    "only-two-gains-beyond-400",
}
# A name that two studies use: it is undecided of final losses only.
FAILS_HERE = {("along_training", "one-shortcut-like-orthogonal")}


def wanted(study, claim):
    """Return the verdict that the documents quote."""
    if (study, claim) in FAILS_HERE:
        return "FAILS"
    if claim in UNDECIDED:
        return "UNDECIDED"
    return "FAILS" if claim in FAILURES else "HOLDS"


@pytest.mark.slow
@pytest.mark.parametrize("entry", catalogue(), ids=lambda e: e.full_name)
def test_verdicts_at_quick(entry, tmp_path):
    plan = plan_study(entry, scale="quick")
    claims = run_study(plan, root=tmp_path).summary["claims"]
    assert {c["claim"]: c["verdict"] for c in claims} == {
        c.name: wanted(entry.name, c.name) for c in entry.study.claims
    }
