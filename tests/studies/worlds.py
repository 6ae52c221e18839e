"""Rows of a study as if nature were otherwise, and the verdicts on them."""

from theodolite.core import Rows, from_lines
from theodolite.studies import find, last_summary


def rows_of(root, name):
    """Return a study with the predicted and measured rows of its last run."""
    entry = find(name)
    folder, _ = last_summary(root, entry)
    predicted = from_lines(folder.read("predicted.jsonl"))
    config = entry.study.config_from(folder.spec.config)
    return entry.study, predicted, folder.rows(entry.study.cells(config))


def altered(rows, quantity, change, **labels):
    """Return the rows with the values of a quantity, or of several, changed."""
    named = quantity if isinstance(quantity, tuple) else (quantity,)
    found = []
    for row in rows:
        match = row.get("quantity") in named and all(
            row.get(key) == value for key, value in labels.items()
        )
        found.append({**row, "value": change(row)} if match else row)
    assert Rows(found) != rows, f"no row of {quantity} was changed"
    return Rows(found)


def shift(amount):
    return lambda row: row["value"] + amount


def const(value):
    return lambda row: value


def first(change):
    """Change one row only: the first that is met."""
    met = []

    def once(row):
        met.append(row)
        return change(row) if len(met) == 1 else row["value"]

    return once


def check_verdicts(root, name, failures):
    """Every claim of a study has the verdict that was expected."""
    study, predicted, measured = rows_of(root, name)
    found = {c.name: c.check(predicted, measured).outcome for c in study.claims}
    wanted = {c: "FAILS" if c in failures else "HOLDS" for c in found}
    assert found == wanted


def check_errors(root, name):
    """Every row carries its error."""
    _, predicted, measured = rows_of(root, name)
    for row in [*predicted, *measured]:
        assert row.get("error") is not None, row


def check_world(root, name, world):
    """The verdict on a claim turns in a world."""
    claim, side, quantity, labels, change = world
    study, predicted, measured = rows_of(root, name)
    (found,) = [c for c in study.claims if c.name == claim]
    before = found.check(predicted, measured)
    if side == "m":
        measured = altered(measured, quantity, change, **labels)
    else:
        predicted = altered(predicted, quantity, change, **labels)
    after = found.check(predicted, measured)
    assert after.outcome != before.outcome
    assert after.because != before.because


def check_all_turn(name, worlds):
    """No claim of a study is left without a world in which its verdict turns."""
    assert {claim.name for claim in find(name).study.claims} == {w[0] for w in worlds}
