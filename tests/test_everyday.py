"""Five everyday tasks of docs/everyday.md: they run as written, in ten lines each."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.later import later
from theodolite.cli import commands as cli
from theodolite.core import ConfigError, Rows
from theodolite.studies import (
    StudyFile,
    plan_study,
    run_study,
    small_study,
    studies_in_file,
)

PAGE = Path(__file__).parents[1] / "docs" / "everyday.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
SET_UP, SHARPNESS, DENSITY, LIGHTNING, MAP, STUDY = BLOCKS
MOST = 10
lightning = later("lightning.pytorch", "pip install 'theodolite[lightning]'")


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A namespace after the set-up, in a folder of its own."""
    torch.manual_seed(0)
    space = {"folder": tmp_path_factory.mktemp("desk")}
    exec(compile(SET_UP, "everyday.md", "exec"), space)
    return space


@pytest.fixture(autouse=True)
def here(desk, monkeypatch):
    monkeypatch.chdir(desk["folder"])


def run(block, space):
    exec(compile(block, "everyday.md", "exec"), space)


@pytest.mark.parametrize("block", BLOCKS[1:], ids=range(1, 6))
def test_a_task_takes_ten_lines(block):
    lines = [line for line in block.splitlines() if line.strip()]
    assert len(lines) <= MOST
    assert max(map(len, lines)) <= 88


def test_sharpness_along_a_training(desk):
    run(SHARPNESS, desk)
    rows = desk["run"].probe_rows
    assert rows.column("step") == [0, 10, 20, 30, 40, 50, 60]
    assert all(row["error"] < 0.1 * row["value"] for row in rows)
    assert Path("sharpness.png").stat().st_size > 1000


def test_density_of_a_trained_network(desk):
    run(DENSITY, desk)
    density = desk["density"]
    assert density.cost.passes == 64
    assert density.cdf[-1] == pytest.approx(1)
    assert Path("density.png").stat().st_size > 1000


@pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning")
@pytest.mark.filterwarnings("ignore:.*smaller than the logging interval")
@pytest.mark.filterwarnings("ignore:.*LeafSpec.*is deprecated:FutureWarning")
def test_a_lightning_run_into_tensorboard(desk):
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(64, 10).double()

        def forward(self, x):
            return self.inner(x)

        def training_step(self, batch, number):
            return nn.functional.cross_entropy(self(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    desk["lit"] = Module()
    desk["loader"] = DataLoader(TensorDataset(desk["x"], desk["y"]), batch_size=32)
    run(LIGHTNING, desk)
    rows = desk["watch"].rows()
    assert rows.where(quantity="theodolite/sharpness").column("step") == [0, 4, 8]
    (event,) = Path("logs").rglob("events.*")
    assert b"theodolite/sharpness" in event.read_bytes()


def test_a_map_of_depth_and_rate(desk):
    run(MAP, desk)
    assert desk["grid"].shape == (3, 5, 4)
    assert Path("map.png").stat().st_size > 1000


def test_a_small_study_is_judged(desk, capsys):
    Path("edge.py").write_text(STUDY)
    (entry,) = studies_in_file(StudyFile.read("edge.py"))
    plan = plan_study(entry, scale="smoke")
    done = run_study(plan, root="out", jobs=0, figure_formats=())
    (verdict,) = done.summary.claims
    assert verdict.verdict == "HOLDS"
    assert entry.study.title == "Measure"
    assert len(entry.study.cells(plan.config)) == 16
    assert cli._run(["show", "edge"]) == 0  # by the study's name, without its file
    assert "edge/edge: Measure" in capsys.readouterr().out
    Path("edgy.py").write_text(STUDY)
    (again,) = studies_in_file(StudyFile.read("edgy.py"))
    plan = plan_study(again, scale="smoke")
    run_study(plan, root="out", jobs=0, figure_formats=())
    assert cli._run(["show", "edg"]) == 1
    assert "name edge/edge or edgy/edgy" in capsys.readouterr().err


def test_a_small_study_takes_readings_and_rows_and_says_what_it_wants():
    rows = Rows([{"quantity": "q", "value": 1.0}])
    assert small_study(lambda seed: rows).measure(None, {"trial": 0}) == rows
    with pytest.raises(ConfigError, match="returned a float: return numbers by name"):
        small_study(lambda seed: 1.0).measure(None, {"trial": 0})
    with pytest.raises(ConfigError, match=r"claims is .claim.: pass Claim"):
        small_study(lambda seed: rows, "claim")
