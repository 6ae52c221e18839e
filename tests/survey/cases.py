"""A survey made by hand, as one of a small residual network would come out."""

from theodolite.core import Cost, Rows
from theodolite.survey import Advice, Block, Finding, Measured, Survey, Trial

BLOCKS = (
    Block(index=0, name="stem", kind="stem", norms=("batch:stem",), n_parameters=464),
    Block(
        index=1,
        name="layers.0",
        kind="residual",
        skip="identity",
        norms=("batch:pre", "batch:inside"),
        activations=("relu", "relu"),
        n_parameters=4672,
        addition=0,
    ),
    Block(
        index=2,
        name="layers.1",
        kind="residual",
        skip="projection",
        norms=("batch:pre", "batch:inside"),
        activations=("relu", "relu"),
        n_parameters=14528,
        addition=1,
    ),
    Block(index=3, name="head", kind="head", n_parameters=330),
)


def row(measure, quantity, value, error=None, **labels):
    """Return a row as a measure makes it."""
    return {
        "measure": measure,
        "quantity": quantity,
        "value": value,
        "error": error,
        "norm_mode": "batch",
        "seed": 0,
        **labels,
    }


def by_depth(measure, quantity, values):
    return [
        row(measure, quantity, value, block=block.name, depth=block.index)
        for block, value in zip(BLOCKS, values, strict=True)
        if value is not None
    ]


def done(measure, rows, **settings):
    return Measured(
        measure=measure,
        status=settings.pop("status", "done"),
        rows=Rows(rows),
        cost=Cost(wall_s=1.5, cpu_s=2.5, passes=12),
        **settings,
    )


def rates():
    return [
        row("rates", "stable_rate", 0.76, 0.076, optimizer="momentum"),
        row("rates", "rate_in_use", 0.5, 0.0, optimizer="momentum"),
    ]


def by_hand() -> Survey:
    """Return a survey with rows of every kind, one measure skipped and one failed."""
    signal = [
        *by_depth("signal", "forward_rms", (1.0, 1.3, 1.8, 0.6)),
        *by_depth("signal", "forward_correlation", (0.1, 0.2, 0.4, 0.7)),
        *by_depth("signal", "backward_rms", (2e-3, 1.5e-3, 1e-3, 4e-3)),
        row("signal", "loss", 2.41, 0.05),
        row("signal", "gradient_rms", 0.02, module="head"),
        row("signal", "weight_rms", 0.17, module="head"),
    ]
    curvature = [
        row("curvature", "largest_eigenvalue", 5.0, 0.05, rank=0),
        row("curvature", "smallest_eigenvalue", -0.3, 0.02, rank=0),
    ]
    measured = (
        done("map", by_depth("map", "branch_gain", (None, 0.8, 1.1, None))),
        done("signal", signal),
        done("units", [row("units", "dead_share", 0.02, module="layers.0.act1")]),
        done("norms", [row("norms", "batch_per_channel", 4096, module="layers.0.bn1")]),
        done("curvature", curvature),
        done("rates", rates(), status="partial", reason="stopped by its allowance"),
        Measured(
            measure="tangent",
            status="skipped",
            reason="it takes 24 gradients or more: give effort=400",
        ),
        Measured(
            measure="classifier",
            status="refused",
            reason="the targets are no labels of classes: give whole numbers",
        ),
    )
    return Survey(
        title="ResidualNetwork",
        n_parameters=19994,
        blocks=BLOCKS,
        measured=measured,
        findings=(
            Finding(
                rule="rate-too-large",
                severity="sick",
                title="The learning rate is above what this landscape bears",
                says="Steps overshoot where it is steepest. The loss will rise.",
                quantity="rate_over_stable",
                value=2.5,
                error=0.2,
                threshold=1.0,
                above=True,
                source="classical: a quadratic diverges above 2/λmax",
                confidence="proved",
            ),
            Finding(
                rule="signal-kept",
                severity="good",
                title="The signal keeps its size through the depth",
                says="Each block hands on about what it gets.",
                quantity="forward_rms",
                value=1.8,
                error=None,
                threshold=10.0,
                above=False,
                where=("layers.0", "layers.1"),
                study="li2016demystifying/variances",
                confidence="measured",
            ),
        ),
        advice=(
            Advice(
                rule="rate-too-large",
                title="Lower the rate to 0.3",
                code="for group in optimizer.param_groups:\n    group['lr'] = 0.3\n",
                kind="rate",
                trial=Trial(
                    difference=-0.4,
                    low=-0.6,
                    high=-0.2,
                    n_seeds=4,
                    steps=50,
                    helped="yes",
                    said="the loss after 50 steps is 0.4 lower over 4 seeds",
                ),
            ),
        ),
        unsupported=("layers.1.pool: jacobian cannot differentiate it",),
        inputs="made up: 64 images of 3 × 32 × 32 from a standard normal law",
        effort=400.0,
        cost=Cost(wall_s=15.0, cpu_s=25.0, passes=120),
        settings={"loss": "CrossEntropyLoss", "batch_size": 64, "n_batches": 1},
    )
