"""Every study at QUICK: the verdicts that the README and the errata quote."""

import pytest

from theodolite.studies import catalogue, plan_study, run_study

FAILURES = {
    "biases-change-nothing",
    "relu-by-polynomial",
    "zero-is-a-minimum",
    "one-shortcut-is-none",
}


@pytest.mark.slow
@pytest.mark.parametrize("entry", catalogue(), ids=lambda e: e.full_name)
def test_verdicts_at_quick(entry, tmp_path):
    plan = plan_study(entry, scale="quick")
    claims = run_study(plan, root=tmp_path).summary["claims"]
    assert {c["claim"]: c["verdict"] for c in claims} == {
        c.name: "FAILS" if c.name in FAILURES else "HOLDS" for c in entry.study.claims
    }
