"""What the abstract and section 4 assert of the ensemble of a network in training."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from theodolite.core import (
    Choice,
    Claim,
    Judgement,
    Kind,
    Roads,
    Rows,
    Select,
    Test,
    above,
    alike,
    all_of,
    below,
    inside,
    mean,
    measured,
    nothing,
    ordered,
    renamed,
)
from theodolite.studies.littwin2016loss.depth_along_training.tables import (
    GROUP,
    foretold,
    groups,
    whole,
)

LAYERS = ("layerwise",)
PARTS = ("output_depth", "gradient_depth")
HALF = Choice(
    what="depth: the mean share of a network's branches that paths take, weighed by "
    "the energy that paths of this length give to the output, or to the gradient",
    why="the paper measures no ensemble; half depth is then a share of one half",
)
QUARTER = below(
    0.25, source="ours", why="half of the half depth that a plain binomial has"
)


def over_groups(
    make: Callable[[Mapping[str, Any], str], Test],
    *,
    norms: tuple[str, ...] = ("scalar", "batch", "none"),
    parts: tuple[str, ...] = PARTS,
    families: tuple[str, ...] = ("layerwise", "images"),
) -> Test:
    """Judge every kind of network with one of these norms, and both depths."""

    def test(roads: Roads) -> Judgement:
        pieces = []
        for group in groups(roads.measured):
            if group["norm"] in norms and group["family"] in families:
                for part in parts:
                    judged = make(group, part)(roads)
                    pieces.append(renamed(judged, _named(group, part)))
        return all_of(pieces) if pieces else nothing("no such network was read")

    return test


def _named(group: Mapping[str, Any], part: str) -> str:
    told = f"{group['task']}, {group['norm']}, depth {group['depth']}"
    return f"{part.replace('_', ' ')}, {told}"


def depth(group: Mapping[str, Any], part: str) -> Select:
    """Select a depth of a kind of network, of those trained to the end."""
    return measured(part, **group).out_of(whole)


def _stages(rows: Select, roads: Roads) -> list[int]:
    return rows(roads).levels("stage")


def deeper(group: Mapping[str, Any], part: str, *, late: bool = False) -> Test:
    """Judge whether the ensemble is deeper at the end than at the start, or midway."""
    rows = depth(group, part)

    def test(roads: Roads) -> Judgement:
        stages = _stages(rows, roads)
        if len(stages) < 2:
            return nothing("fewer than two stages were read")
        first = stages[len(stages) // 2 if late else 0]
        return ordered(rows.at(stage=first), rows.at(stage=stages[-1]))(roads)

    return test


def deeper_and_deeper(group: Mapping[str, Any], part: str) -> Test:
    """Judge whether the ensemble is deeper at every stage than at the one before."""
    rows = depth(group, part)

    def test(roads: Roads) -> Judgement:
        stages = _stages(rows, roads)
        if len(stages) < 2:
            return nothing("fewer than two stages were read")
        return all_of(
            [
                ordered(rows.at(stage=a), rows.at(stage=b))(roads)
                for a, b in pairwise(stages)
            ]
        )

    return test


def starts_in(region: Any) -> Callable[[Mapping[str, Any], str], Test]:
    """Make the test that a network's depth starts in a region."""
    return lambda group, part: inside(mean(depth(group, part).at(stage=0)), region)


def by_factor(group: Mapping[str, Any], part: str) -> Test:
    """Judge whether larger scales make the ensemble deeper, all else held."""
    rows = measured(f"scaled_{part}", **group)

    def test(roads: Roads) -> Judgement:
        factors = rows(roads).levels("factor")
        if len(factors) < 2:
            return nothing("networks were read with one scale alone")
        return all_of(
            [
                ordered(rows.at(factor=a), rows.at(factor=b))(roads)
                for a, b in pairwise(factors)
            ]
        )

    return test


def _mediated(part: str) -> Callable[[Rows], Rows]:
    """Return how much more of a change the scales explain than all else does."""

    def among(rows: Rows) -> Rows:
        rows = whole(rows)
        back = rows.where(quantity=f"reset_{part}")
        last = {_key(row): row["stage"] for row in back}
        mine = rows.where(quantity=part)
        first = {_key(row): row for row in mine.where(stage=0)}
        end = {_key(row): row for row in mine if row["stage"] == last.get(_key(row))}
        return Rows(
            {
                **row,
                "quantity": "mediated",
                "value": abs(end[_key(row)]["value"] - row["value"])
                - abs(row["value"] - first[_key(row)]["value"]),
                "error": 0.0,
            }
            for row in back
            if _key(row) in end and _key(row) in first
        )

    return among


def _key(row: Mapping[str, Any]) -> tuple:
    return (*(row[k] for k in GROUP), row["trial"])


def mediated(group: Mapping[str, Any], part: str) -> Test:
    """Judge whether putting scales back undoes more than half of the change."""
    rows = measured("mediated", **group).out_of(_mediated(part))
    return inside(mean(rows), above(0))


def by_scales(quantity: str) -> Callable[[Mapping[str, Any], str], Test]:
    """Make the test that the law at a measured scale gives the measured depth."""

    def make(group: Mapping[str, Any], part: str) -> Test:
        def test(roads: Roads) -> Judgement:
            law = {
                (_key(row), row["stage"]): row
                for row in foretold(roads, quantity).where(**group)
            }
            rows = Rows(
                {**row, "value": row["value"] - law[_key(row), row["stage"]]["value"]}
                for row in depth(group, part)(roads)
                if (_key(row), row["stage"]) in law
            )
            if not len(rows):
                return nothing("no scale of these networks was measured")
            gaps = Roads(roads.predicted, rows)
            margin = alike(0.1, "a tenth of all branches, which a figure would show")
            stages = rows.levels("stage")
            return all_of(
                [
                    inside(mean(measured(part, stage=stage)), margin)(gaps)
                    for stage in (stages[0], stages[-1])
                ]
            )

        return test

    return make


CLAIMS = (
    Claim(
        name="initially-below-half",
        place="Abstract, section 1, section 3",
        statement=(
            "Initially the ensemble is mostly at depths lower than half the network's "
            "depth."
        ),
        test=over_groups(starts_in(below(0.5))),
        rival="half depth, as a binomial of equal paths has, or more",
        choices=(HALF,),
    ),
    Claim(
        name="unit-scales-extremely-shallow",
        place="Section 4, claim 3; section 4.1",
        statement=(
            "With batch normalisation the start $\\lambda = 1$ involves extremely "
            "shallow nets."
        ),
        test=over_groups(starts_in(QUARTER), norms=("scalar", "batch")),
        rival="a start near half depth",
        choices=(HALF,),
    ),
    Claim(
        name="scales-control-depth",
        place="Section 4, claim 1; lemma 4",
        statement=(
            "The distribution of depths is controlled by the scaling parameter: with "
            "all branches' scales halved or doubled, nothing else changed, the "
            "ensemble is shallower or deeper."
        ),
        test=over_groups(by_factor, norms=("scalar", "none"), families=LAYERS),
        rival="depths that hang on the direction of the weights alone",
        choices=(HALF,),
    ),
    Claim(
        name="deeper-with-batch-norm",
        place="Abstract; section 4, claims 2 and 3",
        statement=(
            "As training progresses the ensemble of a network with batch normalisation "
            "becomes deeper."
        ),
        test=over_groups(deeper, norms=("scalar", "batch")),
        rival="an ensemble that stays as deep as it began, or becomes shallower",
        choices=(HALF,),
    ),
    Claim(
        name="deeper-without-norm",
        place="Section 4, claim 2; section 4.2",
        statement=(
            "So does that of a network without batch normalisation, as $C$ grows."
        ),
        test=over_groups(deeper, norms=("none",)),
        rival="an ensemble that stays as deep as it began, or becomes shallower",
        choices=(HALF,),
    ),
    Claim(
        name="deeper-and-deeper",
        place="Abstract; section 4, claim 2",
        statement=(
            "The ensemble becomes deeper and deeper: at every stage of training more "
            "than at the one before."
        ),
        test=over_groups(deeper_and_deeper),
        rival="an ensemble that first becomes shallower",
        choices=(HALF,),
    ),
    Claim(
        name="deeper-late",
        place="Beside section 4, claim 2",
        kind=Kind.BEYOND,
        statement=(
            "Past its first phase every ensemble becomes deeper: at the end of "
            "training more than midway."
        ),
        test=over_groups(partial(deeper, late=True)),
        rival="ensembles that go on becoming shallower",
        choices=(
            HALF,
            Choice(
                what="midway: the middle one of readings spaced in the logarithm",
                why="ours, once it was seen that depths fall first",
            ),
        ),
    ),
    Claim(
        name="scales-are-the-mechanism",
        place="Abstract; section 1",
        statement=(
            "The scaling is the main mechanism behind the change of depth: with all "
            "scales of a trained network put back to their start, more than half of "
            "the change is undone."
        ),
        test=over_groups(mediated),
        rival="weights that align with one another at equal scales",
        choices=(HALF,),
    ),
    Claim(
        name="gains-foretell-depth",
        place="Beside equation 16",
        kind=Kind.BEYOND,
        statement=(
            "The law of equation 16, at the $\\beta$ that the measured gains of the "
            "branches lead to, gives the output's effective depth within a tenth of "
            "all branches, at the start and at the end of training."
        ),
        test=over_groups(by_scales("gain_beta"), parts=("output_depth",)),
        rival="paths that interfere, so that gains say little of depths",
        choices=(HALF,),
    ),
    Claim(
        name="paper-s-beta-foretells-depth",
        place="Beside equation 16 and the end of section 3",
        kind=Kind.BEYOND,
        statement=(
            "So does $\\beta = \\rho n C/\\sqrt{\\Lambda}$ with $\\Lambda = n$, from "
            "measured weights, gates and scales, for fully connected networks."
        ),
        test=over_groups(
            by_scales("scale_beta"), parts=("output_depth",), families=LAYERS
        ),
        rival="a scale that hangs on more than the weights' size",
        choices=(HALF,),
    ),
)
