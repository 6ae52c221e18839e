"""Curves of losses, and means of condition numbers."""

from theodolite.core import Roads, Row, Rows, points


def table(roads: Roads) -> Rows:
    """Return losses, and means of the condition numbers' logarithms."""
    ratios = roads.measured.where(quantity="ratio")
    found = points(ratios, ("setting", "kind", "depth"), log=True)
    return roads.measured.where(quantity="loss") + found


def compare(roads: Roads) -> list[Row]:
    """Deviations of spectra, which equivalence sets to nothing, and closed forms."""
    gaps = roads.measured.where(quantity="spectrum_gap")
    rows: list[Row] = [
        {
            "label": f"deviation of spectra, orthogonal weights, {setting}",
            "predicted": 0.0,
            "measured": float(gaps.where(setting=setting).values().max()),
            "error": float(gaps.where(setting=setting).values("error").max()),
        }
        for setting in dict.fromkeys(gaps.column("setting"))
    ]
    ratios = roads.measured.where(
        quantity="ratio", setting="linear", kind="one_shortcut"
    )
    for closed in roads.predicted.where(trial=ratios.levels("trial")[0]):
        found = ratios.only(depth=closed["depth"], trial=closed["trial"])
        rows.append(
            {
                "label": f"ratio, linear 1-shortcut, depth {closed['depth']}, dataset "
                f"{closed['trial']}",
                "predicted": closed["value"],
                "measured": found["value"],
                "error": found["error"],
            }
        )
    return rows
