"""A paper with one study that takes no time, for trying what surrounds studies."""

import sys
from dataclasses import dataclass
from types import ModuleType

from theodolite import figures
from theodolite.core import Claim, Rows, above, exact, inside, mean, measured, predicted
from theodolite.studies import Drawing, Exhibit, Explorer, Paper, Study, StudyConfig

PAPER = Paper(
    "tiny2020paper",
    "A tiny paper",
    "Nobody",
    2020,
    ("line",),
    explorer=Explorer("path_ensemble", ("line", "other")),
    package="tiny2020paper",
)
NAME = "tiny2020paper/line"
calls = []


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    slope: float = 2.0


def cells(config):
    return [{"trial": seed} for seed in config.seeds]


def predict(config):
    calls.append("predict")
    return Rows(
        [
            {"quantity": "slope", "value": config.slope},
            {"quantity": "gap", "value": 1e-16, "error": 1e-15},
        ]
    )


def measure(config, cell):
    calls.append("measure")
    value = config.slope + 0.01 * cell["trial"]
    return Rows([{"quantity": "y", "value": value, "error": 0.0}])


def compare(both):
    theory = both.predicted.value(quantity="slope")
    mean = both.measured.where(quantity="y").values().mean()
    return [{"label": "y", "predicted": theory, "measured": mean, "error": 0.1}]


def ensemble(both):
    """Three networks that share their energy in two."""
    return Rows(
        {
            "quantity": "share",
            "network": f"trial {row['trial']}",
            "length": taken,
            "value": 0.5,
            "error": 0.0,
        }
        for row in both.measured.where(quantity="y")
        for taken in (0, 1)
    )


def draw(table):
    figure, (panel,) = figures.new_figure(3, 2)
    panel.plot(table.column("trial"), table.values())
    return figure


STUDY = Study(
    title="A line",
    summary="Lines have a slope.",
    presets={
        "smoke": Config(n_seeds=3),
        "quick": Config(n_seeds=4),
        "paper": Config(n_seeds=5),
    },
    cells=cells,
    predict=predict,
    measure=measure,
    compare=compare,
    claims=(
        Claim(
            name="rises",
            place="Figure 1",
            statement="The line rises.",
            rival="It falls.",
            test=inside(mean(measured("y")), above(0)),
        ),
        Claim(
            name="meets",
            place="Equation 1",
            statement="Theory and measurement agree.",
            rival="They do not.",
            test=exact(predicted("gap")),
        ),
    ),
    exhibits=(Exhibit("path_ensembles", ensemble),),
    drawings=(
        Drawing(
            "line", "The line.", lambda both: both.measured.where(quantity="y"), draw
        ),
    ),
)


def install(monkeypatch):
    """Make this paper the only one."""
    package = ModuleType(PAPER.package)
    package.__path__ = []
    package.PAPER = PAPER
    study = ModuleType(f"{package.__name__}.line")
    study.STUDY = STUDY
    for module in (package, study):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    from theodolite.studies import known_studies as catalogue

    monkeypatch.setattr(catalogue, "own_papers", lambda: [PAPER])
    calls.clear()
