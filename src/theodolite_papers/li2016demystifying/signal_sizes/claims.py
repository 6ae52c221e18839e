"""Claims of section 4.1 on signals at the start and after training."""

from theodolite.core import (
    Choice,
    Claim,
    Rows,
    Select,
    above,
    below,
    every,
    exact,
    inside,
    measured,
    slope_difference,
    trend,
)


def variance(kind: str) -> Select:
    """Select output variances of a kind at the start."""
    return measured("variance", kind=kind)


def last(rows: Rows) -> Rows:
    """Return the last responses of networks that trained to the end."""
    return rows.where(
        lambda row: row.get("epoch") == row.get("epochs"), status="finished"
    )


RESPONSE = measured("response").out_of(last)


WORDS = {
    "change_at_zero": "relative change of the variance, zero weights",
    "at_he": "relative change of the variance, He weights",
}
CLAIMS = (
    Claim(
        name="variance-explodes",
        place="Section 4.1",
        statement="With He's (MSRA) weights the output variance of a residual network "
        "explodes with depth, because of the shortcuts.",
        test=every(
            trend(
                variance("residual"),
                over="units",
                log_x=False,
                slope_in=above(0),
                name="decades a unit, with shortcuts",
            ),
            inside(
                slope_difference(
                    variance("residual"),
                    variance("plain"),
                    "units",
                    log_x=False,
                    name="decades a unit, with shortcuts less without",
                ),
                above(0),
            ),
        ),
        rival="a variance that stays, or that grows without shortcuts as well",
    ),
    Claim(
        name="norm-solves-it-partly",
        place="Section 4.1",
        statement="Batch normalisation solves this partly: the output variance grows "
        "more slowly, and still is large in deep networks.",
        test=every(
            trend(
                variance("normalised"),
                over="units",
                slope_in=above(0),
                name="exponent of the variance in units, with batch norm",
            ),
            inside(
                slope_difference(
                    variance("residual"),
                    variance("normalised"),
                    "units",
                    log_x=False,
                    name="decades a unit, without batch norm less with",
                ),
                above(0),
            ),
        ),
        rival="a variance that batch normalisation keeps, or leaves as it was",
    ),
    Claim(
        name="zero-keeps-variance",
        place="Section 4.1",
        statement="With all weights of the units at zero the variance of the signal "
        "stays the same along the network.",
        test=exact(
            measured("change_at_zero"),
            rival=measured("change_at_zero").reading("at_he"),
        ),
        rival="He's weights, at which it grows from the first unit on",
        own_rows_only=True,
    ),
    Claim(
        name="deeper-smaller-responses",
        place="Section 4.1, confirming He et al. (2015)",
        statement="The deeper a residual network, the smaller are the responses of "
        "its layers after training: here the deviation of a branch before it is added.",
        test=trend(
            RESPONSE,
            over="depth",
            slope_in=below(0),
            name="exponent of the mean response in depth",
        ),
        rival="responses that do not depend on depth, as at the start",
        choices=(
            Choice(
                what="networks of one stage, trained on 8×8 digits",
                why="the paper says that it was confirmed, and not on what",
            ),
        ),
    ),
)
