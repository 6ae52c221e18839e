"""Committed rows of figures 7 and 8 as if nature were otherwise."""

from functools import cache

from tests.studies.counterfactuals import check_errors, claim_of
from theodolite import figures
from theodolite.core import Kind, PredictedAndMeasured, Rows
from theodolite.studies import find


@cache
def committed(name):
    """Return both sides of a study's committed run."""
    study = find(name).study
    return study.committed.run.predicted_and_measured(
        study.predict(study.presets["smoke"])
    )


def outcome(name, claim, both):
    """Return what rows say of a claim."""
    return str(claim_of(find(name).study, claim).rule(both).outcome)


def changed(both, changes):
    """Return the sides with columns of measured rows changed, one after the other."""
    rows = both.measured
    for (quantity, column), labels, change in changes:
        found = Rows(
            {**row, column: change(row)}
            if row["quantity"] == quantity
            and all(row.get(key) == value for key, value in labels.items())
            else row
            for row in rows
        )
        assert found != rows, f"no row of {quantity} was changed"
        rows = found
    return PredictedAndMeasured(both.predicted, rows)


def edged(both):
    """Return the sides with all best rates on the edge of what was tried."""
    return PredictedAndMeasured(
        both.predicted,
        Rows(
            {**row, "edge": True, "own_edge": True}
            if row["quantity"] in ("log10_rate", "excess", "final_loss")
            else row
            for row in both.measured
        ),
    )


def times(factor):
    return lambda row: row["value"] * factor


def const(value):
    """A constant with a hair of spread, as no measurement is without."""
    return lambda row: value * (1 + 1e-3 * row.get("trial", 0))


def power(scale, exponent):
    return lambda row: const(scale * row["depth"] ** exponent)(row)


def moved(decades):
    return lambda row: row["own_rate"] + decades


def legend(drawing, both):
    """Draw, and return the names in the legend."""
    with figures.house_style():
        figure = drawing.draw(drawing.table(both))
    assert all(panel.get_xlabel() for panel in figure.axes)
    (shared,) = figure.legends
    names = [text.get_text() for text in shared.get_texts()]
    assert len(names) == len(set(names))
    return names


class CommittedChecks:
    """What the claims on figures 7 and 8 are tested for on the committed run.

    Attributes:
        study: Name of the study.
        verdicts: Those of the claims that do not hold.
        beyond: Claims that are ours.
        any_rate: The claim that all rates end alike, which one network decides.
        without_rates: Claims that no best rate enters.
        cases: A claim, an outcome and what is changed in the rows to have it.
    """

    study: str
    verdicts: dict
    beyond: set
    any_rate: str
    without_rates: set
    cases: list

    @property
    def claims(self):
        return {claim.name: claim for claim in find(self.study).study.claims}

    def test_rows_at_smoke_carry_their_error(self, smoke_root):
        check_errors(smoke_root, self.study)

    def test_verdicts_of_the_committed_run(self):
        for name in self.claims:
            wanted = self.verdicts.get(name, "HOLDS")
            assert outcome(self.study, name, committed(self.study)) == wanted, name

    def test_each_verdict_turns_on_a_counterfactual(self, case):
        name, wanted, changes = case
        both = committed(self.study)
        assert outcome(self.study, name, both) != wanted
        assert outcome(self.study, name, changed(both, changes)) == wanted

    def test_every_claim_has_a_counterfactual(self):
        assert {case[0] for case in self.cases} == set(self.claims)

    def test_what_the_paper_has_no_words_on_is_beyond_it(self):
        ours = {name for name, one in self.claims.items() if one.kind is Kind.BEYOND}
        assert ours == self.beyond

    def test_one_network_decides_nothing(self):
        both = committed(self.study)
        alone = both.measured.where(lambda row: row.get("trial", 0) == 0)
        alone = PredictedAndMeasured(both.predicted, alone)
        for name in set(self.claims) - {self.any_rate}:
            assert outcome(self.study, name, alone) == "UNDECIDED", name

    def test_an_optimum_on_the_edge_decides_nothing(self):
        """But for what no best rate enters, and losses that no rate changes."""
        both = edged(committed(self.study))
        for name in set(self.claims) - {self.any_rate} - self.without_rates:
            assert outcome(self.study, name, both) == "UNDECIDED", name
