"""Surveys of deep networks, made by hand: 200 blocks, and a change of them."""

from dataclasses import replace

import numpy as np

from tests.survey.cases import by_hand, done, row
from theodolite.survey import Block, Finding, Survey


def deep(n_blocks=200, seed=0, growth=0.02) -> Survey:
    """Return a survey of a residual network whose gain grows with depth."""
    random = np.random.default_rng(seed)
    blocks = tuple(_block(index, n_blocks) for index in range(n_blocks))
    rows = {"map": [], "signal": [], "jacobian": [], "block_curvature": [], "units": []}
    for block in blocks:
        here = {"block": block.name, "depth": block.index}
        gain = np.exp(growth * block.index + 0.1 * random.normal())
        if block.kind == "residual":
            rows["map"].append(row("map", "branch_gain", 0.1 * gain, 0.004, **here))
        for quantity, value in (("forward_rms", gain), ("backward_rms", 1e-4 / gain)):
            rows["signal"].append(row("signal", quantity, value, **here))
        for layer in ("conv1", "conv2"):
            spread = 0.1 * np.exp(0.2 * random.normal())
            module = f"{block.name}.{layer}"
            rows["signal"].append(row("signal", "weight_rms", spread, module=module))
        values = gain * np.geomspace(0.05, 4.0, 11)
        rows["jacobian"] += [
            row("jacobian", "singular_value", v, 0.02 * v, share=k / 10, **here)
            for k, v in enumerate(values)
        ]
        rows["block_curvature"].append(
            row("block_curvature", "block_largest_eigenvalue", gain**2, 0.1, **here)
        )
        dead = max(0.0, 0.02 * random.normal())
        rows["units"].append(
            row("units", "dead_share", dead, module=f"{block.name}.relu")
        )
    base = by_hand()
    kept = [one for one in base.measured if one.measure not in rows]
    return replace(
        base,
        title=f"ResidualNetwork-{n_blocks}",
        blocks=blocks,
        measured=(*(done(name, mine) for name, mine in rows.items()), *kept),
        findings=(*base.findings, _exploding(blocks)),
        n_parameters=11_173_962,
        inputs="64 images of cifar10",
        unsupported=(),
    )


def altered(survey: Survey) -> Survey:
    """Return the survey as after a surgery: branches scaled down, one block more."""
    calmer = deep(len(survey.blocks) + 1, growth=0.002)
    kept = tuple(one for one in calmer.findings if one.rule != "residual-sum-explodes")
    return replace(calmer, title=f"{survey.title}, branches scaled", findings=kept)


def _block(index: int, n_blocks: int) -> Block:
    if index in (0, n_blocks - 1):
        kind = "head" if index else "stem"
        return Block(index=index, name=kind, kind=kind, n_parameters=500)
    return Block(
        index=index,
        name=f"layer{1 + 4 * index // n_blocks}.{index}",
        kind="residual",
        skip="projection" if index % 50 == 0 else "identity",
        norms=("batch:pre", "batch:inside"),
        activations=("relu", "relu"),
        n_parameters=4672,
        addition=index - 1,
    )


def _exploding(blocks) -> Finding:
    return Finding(
        rule="residual-sum-explodes",
        severity="warning",
        title="The residual sum grows with depth",
        says="Each block adds more than the last; late blocks drown the early ones.",
        quantity="branch_gain",
        value=1.27e5,  # as wide as numbers come on a page
        error=0.17e5,
        threshold=2.0,
        above=True,
        where=tuple(block.name for block in blocks[-12:-1]),
        source="Figure 4 of a paper",
        confidence="measured",
    )
