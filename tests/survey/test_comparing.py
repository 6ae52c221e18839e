"""Two surveys side by side."""

import json
from dataclasses import replace

import pytest
import torch
from torch import nn

from tests.survey.cases import by_hand, done, row
from tests.survey.test_watching import data, network
from theodolite.core import ConfigError
from theodolite.survey import Block, compare, survey
from theodolite.survey.comparing.differences import match_blocks


def blocks(*names, kind="residual"):
    return [Block(index=i, name=name, kind=kind) for i, name in enumerate(names)]


@pytest.mark.parametrize(
    ("before", "after", "pairs"),
    [
        ("a b c", "a b c", "a-a b-b c-c"),
        ("a b c", "a x c", "a-a b-x c-c"),
        ("a b c", "a c", "a-a b- c-c"),
        ("a c", "a b c", "a-a -b c-c"),
        ("a b", "x y", "a-x b-y"),
        ("a b", "b a", "-b a-a b-"),
        ("", "a", "-a"),
    ],
)
def test_blocks_meet_by_name_else_by_depth(before, after, pairs):
    matched = match_blocks(blocks(*before.split()), blocks(*after.split()))
    told = " ".join(
        "-".join("" if block is None else block.name for block in pair)
        for pair in matched
    )
    assert told == pairs


def test_a_stem_is_no_residual_block():
    (stem,), rest = blocks("s", kind="stem"), blocks("x", "y")
    matched = match_blocks([stem], rest)
    assert [pair.count(None) for pair in matched] == [1, 1, 1]


def with_rows(rows):
    return replace(by_hand(), measured=(done("curvature", rows),))


def test_intervals_join_both_errors():
    one = with_rows([row("curvature", "trace", 10.0, 0.3)])
    other = with_rows([row("curvature", "trace", 11.0, 0.4)])
    (difference,) = compare(one, other).differences
    assert difference["value"] == 1.0
    assert (difference["low"], difference["high"]) == pytest.approx(
        (1 - 1.96 * 0.5, 1 + 1.96 * 0.5)
    )
    assert difference["changed"] == "up"
    (difference,) = compare(other, one).differences
    assert difference["changed"] == "down"
    near = with_rows([row("curvature", "trace", 10.9, 0.4)])
    (difference,) = compare(one, near).differences
    assert difference["changed"] == "no"


def test_exact_numbers_differ_beyond_rounding_alone():
    one = with_rows([row("curvature", "trace", 10.0)])
    for value, changed in ((10.0, "no"), (10.000001, "no"), (10.01, "up")):
        other = with_rows([row("curvature", "trace", value)])
        (difference,) = compare(one, other).differences
        assert difference["changed"] == changed


def test_rows_meet_by_their_labels_and_paired_blocks():
    def survey(names, values):
        rows = [
            row("map", "branch_gain", value, 0.0, block=name, depth=i)
            for i, (name, value) in enumerate(zip(names, values, strict=True))
        ]
        rows.append(row("curvature", "largest_eigenvalue", 5.0, 0.1, rank=0))
        rows.append(row("curvature", "largest_eigenvalue", 4.0, 0.1, rank=1))
        comparison = with_rows(rows)
        return replace(comparison, blocks=tuple(blocks(*names)))

    one = survey(("a", "b", "c"), (1.0, 2.0, 3.0))
    other = survey(("a", "x", "c"), (1.0, 4.0, 9.0))
    comparison = compare(one, other)
    gains = {
        d["block"]: d["value"]
        for d in comparison.differences
        if d["quantity"] == "branch_gain"
    }
    assert gains == {"a": 0.0, "b → x": 2.0, "c": 6.0}
    ranks = [d for d in comparison.differences if d["quantity"] == "largest_eigenvalue"]
    assert [(d["rank"], d["value"]) for d in ranks] == [(0, 0.0), (1, 0.0)]


def test_a_block_without_a_pair_meets_none():
    one = with_rows([row("map", "branch_gain", 1.0, block="a", depth=0)])
    one = replace(one, blocks=tuple(blocks("a", kind="plain")))
    other = with_rows([row("map", "branch_gain", 1.0, block="b", depth=0)])
    other = replace(other, blocks=tuple(blocks("b", kind="residual")))
    assert not compare(one, other).differences


def test_numbers_that_are_not_finite_have_no_difference():
    one = with_rows([row("curvature", "trace", float("nan"))])
    assert not compare(one, with_rows([row("curvature", "trace", 1.0)])).differences


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ((8, 256), (16, 256), "8 of 256 samples against 16 of 256 samples: trace"),
        ((8, 256), (8, 256), None),
        ((8, 8), (256, 256), "8 of 8 samples against 256 of 256 samples: trace"),
        ((256, 256), (256, 256), None),
    ],
)
def test_numbers_of_different_samples_are_not_compared(before, after, said):
    one, other = (
        with_rows(
            [
                row("curvature", "trace", 9.0, 0.1, n_samples=n, of_samples=of),
                row("map", "n_norms", 3, 0.0),
            ]
        )
        for n, of in (before, after)
    )
    comparison = compare(one, other)
    assert comparison.not_compared == (() if said is None else (said,))
    assert comparison.to_dict()["not_compared"] == list(comparison.not_compared)
    quantities = [one["quantity"] for one in comparison.differences]
    assert quantities == (["trace", "n_norms"] if said is None else ["n_norms"])
    assert (f"not compared: {said}" in str(comparison)) is (said is not None)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            {"status": "converged"},
            {"status": "max_matvecs"},
            "converged against not converged: trace",
        ),
        ({"status": "converged"}, {"status": "exact"}, None),
        (
            {"norm_mode": "eval"},
            {"norm_mode": "batch"},
            "norms in eval mode against norms in batch mode: trace",
        ),
        (
            {"norm_mode": "as_is", "norm_layers": "2 in train"},
            {"norm_mode": "as_is", "norm_layers": "3 in eval"},
            "norms in train mode against norms in eval mode: trace",
        ),
        (
            {"norm_mode": "as_is", "norm_layers": "2 in train"},
            {"norm_mode": "as_is"},
            None,
        ),
    ],
)
def test_numbers_of_unlike_quantities_are_not_compared(before, after, said):
    one, other = (
        with_rows(
            [
                {
                    **row("curvature", "trace", 9.0, n_samples=8, of_samples=8),
                    **facts,
                }
            ]
        )
        for facts in (before, after)
    )
    comparison = compare(one, other)
    assert comparison.not_compared == (() if said is None else (said,))
    assert len(comparison.differences) == (said is None)


def test_a_network_does_not_differ_from_itself_at_another_effort():
    torch.manual_seed(0)
    layers = nn.Linear(3, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3)
    model, x = nn.Sequential(*layers), torch.randn(64, 3)
    y = torch.arange(64) % 3
    few, many = (
        survey(model, (x, y), loss=nn.CrossEntropyLoss(), effort=effort)
        for effort in (60, "normal")
    )
    comparison = compare(few, many)
    assert set(comparison.rows().levels("quantity")) >= {"loss", "forward_rms"}
    assert comparison.rows().levels("changed") == ["no"]
    assert comparison.not_compared


def test_findings_are_gone_new_and_kept():
    one = by_hand()
    new = replace(one.findings[0], rule="brand-new", title="Something ill")
    other = replace(one, findings=(one.findings[1], new))
    comparison = compare(one, other)
    assert [f.rule for f in comparison.gone] == ["rate-too-large"]
    assert [f.rule for f in comparison.new] == ["brand-new"]
    assert [f.rule for f in comparison.kept] == ["signal-kept"]
    told = str(comparison)
    assert "✓ gone: The learning rate is above" in told
    assert "✗ new: Something ill" in told
    assert "· kept: The signal keeps its size" in told
    assert max(map(len, told.splitlines())) <= 80


def test_a_good_finding_that_is_gone_is_no_good_news():
    one = by_hand()
    poorer = replace(one, findings=one.findings[:1])
    assert "· gone: The signal keeps its size" in str(compare(one, poorer))
    assert "✓ new: The signal keeps its size" in str(compare(poorer, one))


def test_what_does_not_compare_is_said():
    one = by_hand()
    assert compare(one, one).caveats == ()
    other = replace(one, norm_mode="eval", inputs="given", measured=one.measured[:-3])
    short = replace(one.outcome("map"), status="partial", reason="stopped")
    other = replace(other, measured=(short, *one.measured[1:]))
    told = compare(one, other).caveats
    assert any("inputs" in said for said in told)
    assert any("map" in said for said in told)
    assert "CAUTION" in str(compare(one, other))


def test_rows_and_json_hold_every_difference(tmp_path):
    one = by_hand()
    comparison = compare(one, one)
    rows = comparison.rows()
    assert len(rows) == len(comparison.differences) == len(one.rows())
    assert set(rows.column("changed")) == {"no"}
    comparison.to_json(tmp_path / "two.json")
    kept = json.loads((tmp_path / "two.json").read_text())
    assert kept == comparison.to_dict()
    assert kept["before"] == one.to_dict()


def test_models_are_surveyed_on_the_same_terms():
    one, other = network(), network()
    with torch.no_grad():
        other[1].layer.weight.mul_(0.1)
        other[1].layer.bias.mul_(0.1)
    before = {name: value.clone() for name, value in other.state_dict().items()}
    comparison = compare(
        one, other, data(), loss=nn.CrossEntropyLoss(), effort=9, progress=False,
        measures=("map", "signal"), seed=3,
    )  # fmt: skip
    assert comparison.caveats == ()
    assert comparison.before.seed == comparison.after.seed == 3
    assert all(one.name == other.name for one, other in comparison.pairs)
    gains = {
        d["block"]: d for d in comparison.differences if d["quantity"] == "branch_gain"
    }
    assert gains["1"]["changed"] == "down"
    assert gains["1"]["after"] == pytest.approx(0.1 * gains["1"]["before"], rel=1e-9)
    stem = next(
        d
        for d in comparison.differences
        if d["quantity"] == "forward_rms" and d["block"] == "0"
    )
    assert stem["changed"] == "no"
    for name, value in other.state_dict().items():
        assert torch.equal(value, before[name])


def test_each_model_has_its_own_optimizer():
    one, other = network(), network()
    fast, slow = (
        torch.optim.SGD(model.parameters(), lr=lr)
        for model, lr in ((one, 0.5), (other, 0.05))
    )
    terms = {"loss": nn.CrossEntropyLoss(), "measures": ("rates",)}
    comparison = compare(
        one, other, data(), optimizers=(fast, slow), progress=False, **terms
    )
    rates = [
        s.settings["optimizer_settings"]["lr"]
        for s in (comparison.before, comparison.after)
    ]
    assert rates == [0.5, 0.05]
    with pytest.raises(ConfigError, match="optimizers=\\(of the first"):
        compare(one, other, data(), optimizer=fast, **terms)


def test_kinds_that_do_not_compare_are_refused_in_a_sentence():
    with pytest.raises(ConfigError, match="Survey and Sequential cannot be compared"):
        compare(by_hand(), network())
    with pytest.raises(ConfigError, match="batches, effort was given with two surveys"):
        compare(by_hand(), by_hand(), data(), effort="quick")


def test_a_terminal_shows_what_differs_clearest_first():
    before = by_hand()
    rates = [row("rates", "stable_rate", 0.1, 0.01, optimizer="momentum")]
    changed = {
        "rates": done("rates", rates, status="partial"),
        "curvature": done(
            "curvature", [row("curvature", "largest_eigenvalue", 2.0, 0.05, rank=0)]
        ),
    }
    after = replace(
        before,
        title="Other",
        measured=tuple(changed.get(m.measure, m) for m in before.measured),
        findings=before.findings[:1],
    )
    text = str(compare(before, after)).splitlines()
    differing = [line for line in text if " → " in line and "difference" in line]
    assert text[:3] == [
        "ResidualNetwork → Other: 4 of 4 blocks in both",
        "· gone: The signal keeps its size through the depth",
        "· kept: The learning rate is above what this landscape bears",
    ]
    assert differing[:3] == [
        "  ↓ largest_eigenvalue rank=0  5 → 2, difference -3.14 to -2.86",
        "  ↓ stable_rate optimizer=momentum  0.76 → 0.1, difference -0.81 to -0.51",
        "  = loss  2.41 → 2.41, difference -0.139 to 0.139",
    ]
