"""Figures 7 and 8: the search for rates, and the networks that are trained."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from theodolite.core import ConfigError, Rows, ShortcutBlueprint
from theodolite.networks import build
from theodolite.theory import moments
from theodolite.training import Every, train_grid
from theodolite_papers.li2016demystifying.shared.final_losses.config import (
    NETWORKS,
    RateConfig,
    cells,
    inputs,
)
from theodolite_papers.li2016demystifying.shared.final_losses.search import (
    Search,
    measure,
)

TINY = RateConfig(
    n_seeds=2,
    dataset="digits",
    samples=60,
    networks=("two_shortcut",),
    depths=(4, 8, 12),
    steps=60,
    lowest=-2,
    rungs=6,
)


@pytest.fixture(scope="module")
def data():
    return inputs(TINY)


class TestSearch:
    def search(self, data, **changes):
        strategy = changes.pop("strategy", "auto")
        plan = ShortcutBlueprint(width=10, depth=4)
        return Search(
            replace(TINY, **changes), plan, data, floor=self.floor(data),
            strategy=strategy,
        ).run()  # fmt: skip

    def floor(self, data):
        return moments(*data).optimal_loss()

    def test_losses_are_those_of_a_grid(self, data):
        found = self.search(data)
        rate = TINY.rate(found.best)
        grid = train_grid(
            ShortcutBlueprint(width=10, depth=4), data, {"seed": [0, 1], "lr": [rate]},
            steps=60, strategy="plain", jobs=0,
        )  # fmt: skip
        wanted = grid.final_loss[:, 0] - self.floor(data)
        rows = Rows(found.rows("excess")).where(quantity="excess")
        np.testing.assert_allclose(rows.values(), wanted, rtol=1e-9)

    def test_scouts_find_what_all_find(self, data):
        every = self.search(data)
        scouted = self.search(data, scouts=1, stride=4, reach=2)
        assert scouted.best == every.best
        assert scouted.runs < every.runs
        assert not scouted.edge
        assert scouted.losses[every.best] == every.losses[every.best]

    def test_a_window_moves_until_the_optimum_is_inside(self, data):
        # A stride past the ladder leaves the scouts its lowest rung alone.
        found = self.search(data, scouts=1, stride=1000, reach=8)
        assert found.best == self.search(data).best > TINY.ladder[0] + 8
        assert not found.edge

    def test_the_edge_of_the_ladder_is_flagged(self, data):
        found = self.search(data, highest=-1)
        assert found.edge
        assert found.best == found.config.ladder[-1]

    def test_a_rate_at_which_a_run_diverges_is_not_best(self, data):
        found = self.search(data, highest=2)
        lost = [k for k, runs in found.losses.items() if np.inf in runs.values()]
        assert lost
        assert found.best < min(lost)
        means = Rows(found.rows("excess")).where(quantity="mean_excess")
        assert means.values("finished").min() > 0
        # One lost run costs the rate its place, however low the others end.
        found.losses[found.best][0] = np.inf
        assert found.best not in lost
        assert np.isfinite(list(found.losses[found.best].values())).all()

    def test_the_error_of_a_rate_covers_rungs_and_seeds(self, data):
        found = self.search(data)
        rung = 1 / np.sqrt(12) / TINY.rungs
        row = found.rows("excess")[0]
        assert row["error"] >= rung * (1 - 1e-12)
        # Two seeds that disagree by six rungs, a decade.
        best = found.best
        for seed, place in ((0, best - 3), (1, best + 3)):
            found.losses[place][seed] = 1e-12
        assert found.rows("excess")[0]["error"] > rung

    def test_a_loss_at_the_optimum_is_a_bound(self, data):
        plan, x = ShortcutBlueprint(width=10, depth=2), data[0]
        found = Search(
            replace(TINY, steps=2000, lowest=-1, highest=0), plan, (x, x / 2),
        ).run()  # fmt: skip
        assert min(v for runs in found.losses.values() for v in runs.values()) > 0

    def test_a_run_leaves_its_start_where_half_of_its_excess_is_gone(self, data):
        found = self.search(data)
        rows = Rows(found.rows("excess"))
        grid = train_grid(
            ShortcutBlueprint(width=10, depth=4), data, {"seed": [0], "lr": [0.1, 1.0]},
            steps=TINY.steps, record=Every(1), strategy="plain", jobs=0,
        )  # fmt: skip
        for rate in (-1.0, 0.0):
            row = rows.only(quantity="escape", trial=0, rate=rate)
            above = grid.losses(seed=0, lr=10**rate)[1] - self.floor(data)
            first = np.flatnonzero(above <= above[0] / 2)
            assert row["left"] == bool(len(first))
            if row["left"]:  # the loss is read at some steps only
                assert row["value"] - row["error"] <= first[0] <= row["value"]
            else:
                assert row["value"] == TINY.steps
        fastest = rows.only(quantity="fastest_escape", trial=0)["value"]
        ends = {rung: runs[0] for rung, runs in found.losses.items()}
        kept = [rung for rung, end in ends.items() if np.isfinite(end)]
        assert fastest == min(found.escapes[rung][0] for rung in kept)

    def test_too_little_is_refused(self):
        with pytest.raises(ConfigError, match="at least three"):
            replace(TINY, depths=(4, 8))
        with pytest.raises(ConfigError, match="nothing to choose"):
            replace(TINY, highest=-2)


class TestNetworks:
    def test_depths_fit_units(self):
        config = replace(TINY, networks=tuple(NETWORKS), depths=(4, 6, 8, 12))
        threes = [c["depth"] for c in cells(config) if c["network"] == "three_shortcut"]
        assert threes == [12, 6]

    def test_networks_beside_have_depths_of_their_own(self):
        config = replace(
            TINY, beside=("one_shortcut", "three_shortcut"), beside_depths=(6, 8)
        )
        found = [(c["network"], c["depth"]) for c in cells(config)]
        assert found == [
            ("two_shortcut", 12), ("two_shortcut", 8), ("one_shortcut", 8),
            ("one_shortcut", 6), ("three_shortcut", 6), ("two_shortcut", 4),
        ]  # fmt: skip

    @pytest.mark.parametrize("name", ["one_shortcut", "three_shortcut"])
    def test_networks_beside_have_relus_at_every_middle(self, name, data):
        config = replace(TINY, mid="relu", steps=20, rungs=2)
        cell = {"network": name, "depth": 3}
        found = measure(config, cell).where(quantity="final_loss")
        mid = "identity" if name == "one_shortcut" else "relu"
        plan = ShortcutBlueprint(width=10, depth=3, mid=mid, **NETWORKS[name])
        x = torch.as_tensor(data[0])
        a, b, c = (p.T for p in build(plan, seed=0).parameters())
        wanted = x + torch.relu(torch.relu(x @ a) @ b) @ c
        if name == "one_shortcut":
            wanted = x @ (torch.eye(10) + a) @ (torch.eye(10) + b) @ (torch.eye(10) + c)
        torch.testing.assert_close(build(plan, seed=0)(x), wanted)
        rate = 10 ** measure(config, cell).only(quantity="log10_rate")["value"]
        grid = train_grid(
            plan, data, {"seed": [0, 1], "lr": [rate]}, steps=20, strategy="plain",
            jobs=0,
        )  # fmt: skip
        np.testing.assert_allclose(found.values(), grid.final_loss[:, 0], rtol=1e-8)

    @pytest.mark.parametrize("name", ["xavier", "orthogonal"])
    def test_plain_networks_have_relus_after_odd_matrices(self, name):
        plan = ShortcutBlueprint(width=5, depth=4, mid="relu", **NETWORKS[name])
        network = build(plan, seed=0)
        x = torch.randn(7, 5, dtype=torch.float64)
        a, b, c, d = (p.T for p in network.parameters())
        wanted = torch.relu(torch.relu(x @ a) @ b @ c) @ d
        torch.testing.assert_close(network(x), wanted)

    def test_fewer_samples_are_white_again(self):
        x, y = inputs(TINY)
        data = moments(x, y)
        np.testing.assert_allclose(data.xx, np.eye(10), atol=1e-10)
        np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-10)
        assert len(x) == 60

    def test_strategies_agree(self):
        config = replace(TINY, steps=20, rungs=2)
        cell = {"network": "xavier", "depth": 4}
        auto, plain = (
            measure(config, cell, strategy=strategy) for strategy in ("auto", "plain")
        )
        np.testing.assert_allclose(auto.values(), plain.values(), rtol=1e-8)
