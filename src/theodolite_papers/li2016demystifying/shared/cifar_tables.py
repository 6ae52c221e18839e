"""Which readings of trained networks count, and theory beside their means."""

from theodolite.core import Row, Rows, measured

# Error rate of chance among ten classes, which a diverged network counts as.
CHANCE = 0.9


def longest(rows: Rows) -> Rows:
    """Return the runs that have the most common training length."""
    lengths = rows.where(quantity="parameters").column("epochs")
    if not lengths:
        return Rows()
    most = max(set(lengths), key=lambda e: (lengths.count(e), e))
    return rows.where(epochs=most)


def ended(rows: Rows) -> Rows:
    """Return the last readings of networks that trained to the end.

    A network that diverged counts as chance; one that was stopped does not count.
    """
    rows = longest(rows)
    finished = rows.where(lambda row: row.get("epoch") == row["epochs"])
    lost = rows.where(quantity="parameters", status="diverged")
    chance = {"quantity": "test_error", "value": CHANCE, "error": 0.0}
    return finished.where(status="finished") + [{**row, **chance} for row in lost]


def along(rows: Rows) -> Rows:
    """Return all norms of 2-shortcut networks that trained to the end."""
    return rows.where(quantity="norm", shortcut=2, status="finished")


def over_start(rows: Rows) -> Rows:
    """Return each network's last norm over its first."""
    norms = along(rows)
    first = {_network(row): row for row in norms.where(epoch=0)}
    last = norms.where(lambda row: row["epoch"] == row["epochs"])
    return Rows(_share(row, first[_network(row)]) for row in last)


def _network(row: Row) -> tuple[int, int, int]:
    return row["epochs"], row["depth"], row["trial"]


def _share(last: Row, first: Row) -> Row:
    value = last["value"] / first["value"]
    open_ = last["error"] is None or first["error"] is None
    relative = 0.0 if open_ else last["error"] / last["value"]
    relative += 0.0 if open_ else first["error"] / first["value"]
    error = None if open_ else value * relative
    return {**last, "quantity": "end_over_start", "value": value, "error": error}


ERROR = measured("test_error").out_of(ended)
NORM = measured("norm").out_of(along)
SHRINKAGE = measured("end_over_start").out_of(over_start)
