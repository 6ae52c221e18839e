"""Shares of path lengths on both roads."""

from theodolite.core import Roads, Row, Rows, points


def table(roads: Roads) -> Rows:
    """Return shares by length of the deepest networks, of both roads."""
    shares = roads.measured.where(quantity="share")
    deepest = max(shares.levels("depth"))
    found: list[Row] = []
    for scale in shares.levels("scale"):
        mine = shares.where(scale=scale, depth=deepest)
        for row in points(mine, by=("length",)):
            found.append({**row, "scale": scale, "road": "measured"})
        law = roads.predicted.where(quantity="share", scale=scale, depth=deepest)
        found += [{**row, "road": "law"} for row in law]
    return Rows(found)


def single_paths(roads: Roads) -> Rows:
    """Return the energy of every path of the network of few layers."""
    found = roads.measured.where(quantity="path_energy")
    return Rows({**row, "quantity": "energy"} for row in found)


def compare(roads: Roads) -> list[Row]:
    """Mean and variance of path lengths: Eq 16 beside the networks."""
    found: list[Row] = []
    for law in roads.predicted:
        if law["quantity"] not in ("length", "variance"):
            continue
        mine = roads.measured.where(
            quantity=law["quantity"],
            scale=law["scale"],
            depth=law["depth"],
            part="output",
        )
        (point,) = points(mine, by=("depth",))
        found.append(
            {
                "label": f"{law['quantity']}, {law['scale']}, depth {law['depth']}",
                "predicted": law["value"],
                "measured": point["value"],
                "error": point["spread"],
            }
        )
    return found
