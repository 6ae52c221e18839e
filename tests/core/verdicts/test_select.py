"""Selections: rows by their labels, and out of what is made of all rows."""

from theodolite.core import Roads, Rows, mean, measured

ROWS = Rows(
    {"quantity": "loss", "depth": depth, "epoch": epoch, "trial": trial,
     "value": depth + epoch + 0.1 * trial, "error": 0.0}
    for depth, last in ((2, 3), (4, 1)) for epoch in range(last + 1)
    for trial in (0, 1)
)  # fmt: skip


def common(rows):
    """Return the last readings of the networks that went on longest."""
    return rows.where(epoch=max(rows.column("epoch")))


def test_what_is_made_of_all_rows_comes_before_labels():
    chosen = measured("loss", depth=4)
    assert len(chosen.keeping(common)(Roads(Rows(), ROWS))) == 2
    assert len(chosen.out_of(common)(Roads(Rows(), ROWS))) == 0


def test_rows_may_be_made_that_were_not_there():
    def shares(rows):
        return Rows({**row, "quantity": "share", "value": 0.5} for row in rows)

    roads = Roads(Rows(), ROWS)
    assert mean(measured("share").out_of(shares).at(depth=2))(roads).value == 0.5
    assert mean(measured("share"))(roads).n == 0
