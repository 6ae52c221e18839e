"""A claim that theory itself misses could never hold: its region is refused."""

import pytest

from tests.studies.counterfactuals import theory_of
from theodolite.core import Kind, Outcome, PredictedAndMeasured, TheodoliteError
from theodolite.core.verdicts.judgement import if_exact
from theodolite.studies import catalogue

# Printed tables are among the predicted rows of this study, and decide it alone.
BY_PRINT = {"image_tables": {"ends-lower-in-print"}}


@pytest.mark.parametrize("entry", catalogue(), ids=lambda e: e.full_name)
def test_no_region_excludes_what_theory_gives(entry, smoke_root):
    """Theory's rows in place of the measured ones refute no claim."""
    rows = theory_of(smoke_root, entry)
    both = PredictedAndMeasured(rows, rows)
    missed = set()
    for claim in entry.study.claims:
        try:
            judged = if_exact(claim.test(both))
        except (LookupError, TypeError, ValueError, TheodoliteError):
            continue  # it reads more than theory has
        if claim.kind is not Kind.ERRATUM and judged.outcome is Outcome.FAILS:
            missed.add(claim.name)
    assert missed == BY_PRINT.get(entry.name, set())
