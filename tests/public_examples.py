"""Valid calls of public names that no docstring example calls."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from tests.studies import tiny
from theodolite import (
    anatomy,
    core,
    data,
    figures,
    instruments,
    networks,
    pages,
    report,
    runs,
    studies,
    survey,
    theory,
    training,
)

X = torch.linspace(-1, 1, 18).reshape(6, 3).sin()
ROWS = core.Rows(
    {"quantity": "y", "width": n, "trial": t, "value": n + t / 9 + 1.0, "error": 0.1}
    for n in (2, 4, 8)
    for t in range(4)
)
BOTH = core.PredictedAndMeasured(
    core.Rows({"quantity": "y", "width": n, "value": n + 1.0} for n in (2, 4, 8)), ROWS
)


def verdicts(folder):
    y, two = core.measured("y"), core.measured("y", width=2)
    both, other = BOTH, core.measured("y", width=4)
    big = core.inside(core.mean(y), core.above(0.0))
    little = core.inside(core.largest(two), core.below(9.0, source="ours", why="it is"))
    tests = [
        big, little,
        core.inside(core.smallest(two), core.between(0.0, 9.0)),
        core.inside(core.span(two), core.our_margin(0.5, "small", 0.2)),
        core.inside(core.highest(two), core.above(0.0)),
        core.inside(core.lowest(two), core.above(0.0)),
        core.inside(core.difference(two, other), core.below(0.0)),
        core.inside(core.slope(y, "width", points=2), core.above(0.0)),
        core.inside(core.slope_difference(y, y, "width"), core.below(1.0)),
        core.inside(core.counted(y, lambda row: row["value"] > 0), core.above(0.5)),
        core.inside(core.largest_distance(y, core.predicted("y"), ("width",)),
                    core.below(1.0)),
        core.every(big, little), core.some(big, little), core.against(big, little),
        core.each("width", y, lambda n: big), core.somewhere("width", y, lambda n: big),
        core.at_each("width", y, lambda rows: big), core.ordered(two, other),
        core.equivalent(two, two, margin=core.our_margin(0.5, "small")),
        core.exact(core.predicted("y")),
        core.meets("y", ("width",), core.below(1.0)),
        core.trend(y, over="width", slope_in=core.above(0.0)),
    ]  # fmt: skip
    judged = [test(both) for test in tests]
    core.renamed(core.all_of([judged[0], core.undecided("no rows")]), "all")
    core.any_of(judged[:2])
    core.by_network(ROWS.where(width=2))
    core.slope_by_network(ROWS, "width")
    core.ByNetwork({0: 1.0}, {0: 0.1})
    core.known("a", 1.0)
    parts = [core.sampled("a", [1.0, 2.0, 3.0]), core.sampled("b", [1.0, 2.0, 4.0])]
    core.combined("c", parts, [1.0, 1.0])
    choice = core.Choice(what="deep", why="we chose")
    claim = core.Claim(
        name="y",
        place="p. 1",
        statement="y is large",
        test=big,
        rival="",
        choices=(choice,),
    )
    core.count_verdicts(())
    core.decide(claim, core.Evidence(both))


def readings(folder):
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1)).double()
    batch = (X.double(), X.double()[:, :1])
    dense = instruments.hessian(model, batch, loss=nn.MSELoss())
    reading = instruments.spectrum_of(dense)
    instruments.pair_of(batch)
    core.headline(reading)
    core.metadata_line(reading)
    core.quantity_line(reading, "eigenvalues")
    core.from_lines(core.to_lines(ROWS))
    core.record_values(core.Cost())
    saved = {"format": 1, "value": 1.0, "error": None}
    core.read_record(core.SavedNumber, saved, number=1)
    core.parse_record(core.SavedNumber, json.dumps(saved), number=1)
    core.exclusive()
    core.Dims("a")
    instruments.ProgressUpdate(what="a", done=1, total=2, unit="b", seconds=0.1)


def drawings(folder):
    core.draw_figure("draw_reading", instruments.spectrum_of(
        instruments.hessian(nn.Linear(3, 1).double(), (X.double(), X.double()[:, :1]),
                            loss=nn.MSELoss())))  # fmt: skip
    style = figures.ordered_style(1, [1, 2])
    figure, (ax,) = figures.new_figure()
    figures.line(ax, [1.0, 2.0], [1.0, 2.0], style=style, label="a")
    figures.curve(ax, [1.0, 2.0], [1.0, 2.0], style=style)
    figures.band(ax, [1.0, 2.0], [1.0, 2.0], [0.1, 0.1], style=style, label="b")
    rows = ROWS.where(trial=0)
    figures.row_line(ax, rows, "width", style=style)
    figures.row_curve(ax, rows, "width", style=style)
    figures.row_band(ax, rows, "width", style=style)
    figures.reference_line(ax, 1.0)
    figures.limit_y(ax, means="a", top=9.0)
    figures.count_axis(ax)
    figures.legend(ax)
    figures.shared_legend(figure)
    figures.match_limits(figure, figures.new_figure()[0])


def nets(folder):
    plan = core.ShortcutBlueprint(width=3, depth=4)
    network = networks.ShortcutNetwork(plan)
    networks.set_weights(network, networks.get_weights(network))
    networks.PathNetwork(core.PathBlueprint(inputs=3, width=4, depth=5))
    image = networks.PreactivationNetwork(core.PreactivationBlueprint(depth=8, width=4))
    networks.unit_convolutions(image)
    networks.SystemNetwork(core.normalised_residual(inputs=3, widths=(3, 3)))
    networks.Nonlinearity("tanh")
    networks.ResidualBlock(nn.Sequential(nn.Linear(3, 3)))
    networks.ParameterisedAffine(core.AffineLayer(into=3, out=3))
    networks.AverageSkip(2, 4, 2)
    core.BatchNormLayer(features=3)
    core.FlattenLayer()


def closed_forms(folder):
    plan, x, y = core.ShortcutBlueprint(width=3, depth=4), np.eye(3), np.eye(3)[::-1]
    weights, rectified = np.ones((4, 3, 3)), replace(plan, mid="relu")
    theory.conditioning_at_zero(plan, x, y)
    theory.data_matrix(plan, x, y)
    theory.unit_blocks(plan, x, y)
    moments = theory.moments(x, y)
    theory.linear_gradient(plan, weights, moments)
    theory.linear_loss(plan, weights, moments)
    theory.relu_hessian_parts(rectified, weights, x, y)
    theory.step_unit(np.array([1.0, 0.0]), np.array([0.6, 0.8]), 1.0)


def datasets(folder):
    digits = data.load("digits").subset(range(20))
    data.two_classes(digits, 0, 1)
    generator = torch.Generator().manual_seed(0)
    data.augment(torch.ones(2, 1, 8, 8), generator=generator)
    own = replace(digits, name="mine")
    data.register_dataset(own)
    data.unregister_dataset("mine")


def page_parts(folder):
    shared = pages.SharedSvg()
    series = pages.Series(name="a", points=((1.0, 2.0, None), (2.0, 3.0, 0.1)))
    pages.draw_chart(pages.Chart(label="a", x="b", y="c", series=(series,)))
    pages.draw_bars([pages.Bar(name="a", value=1.0)], label="a", axis="b")
    svg = "<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'/>"
    pages.parse_svg(svg, "a")
    pages.inline_svg(svg, shared=shared, label="a")


def a_study(folder):
    with pytest.MonkeyPatch.context() as patch:
        tiny.install(patch)
        entry = studies.find("line")
        plan = studies.plan_study(entry, scale="smoke")
        done = studies.run_study(plan, root=folder, jobs=0, figure_formats=["svg"])
        studies.last_summary(folder, entry)
        studies.redraw(entry, done.folder)
        list(studies.repair_runs(folder))
        studies.select("line")
        studies.evidence_of(entry, plan.config, done.folder)
        studies.with_committed(entry.study, plan.config, BOTH)
        studies.Repaired(done.folder.path)
        runs.read_summary(done.folder)
        core.check_summary(core.to_json_values(done.summary), source="a")
        core.parse_summary(done.summary.to_text(), source="a")
        runs.results_in(folder)
        runs.runs_in(folder)
        runs.execute(done.folder, entry.study.cells(plan.config), plan.work, jobs=0)
        studies.catalogue()
        studies.papers()
        studies.plugin_problems()
        report.write_report(folder, folder / "page.html")
        report.write_errata(folder, folder / "errata.md")
    runs.write_text(folder / "text.txt", "a")
    runs.Pool(1)
    runs.check_executor("pool", jobs=1, address=None, gpus=None)
    runs.LiveProgress()


def surveys(folder):
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
    batch, loss = (X, torch.arange(6) % 3), nn.CrossEntropyLoss()
    first = survey.survey(model, batch, loss=loss, progress=False, measures=["map"])
    survey.compare(first, first).to_json(folder / "compared.json")
    first.to_html(folder / "survey.html")
    survey.advise(first, survey.find(first))
    before = torch.optim.SGD(model.parameters(), lr=0.1)
    survey.refit(before, model, model)
    survey.Trial(n_seeds=2, steps=1, helped="no")
    training.AtLosses([0.1])


def parts_of_studies(folder):
    studies.Paper("a", "b", "c", 2020, ("d",), studies.Explorer("e"))
    studies.Chapter("a", "b", (studies.Finding("c/d"),))
    studies.Drawing("a", "b", lambda both: both.measured, lambda rows: None)
    studies.Exhibit("a", lambda both: both.measured)
    studies.Committed(studies.CommittedRun("theodolite", "none"), ("trial",))


def used_by_the_library(folder):
    model, loss = nn.Linear(3, 1), nn.MSELoss()
    batch = (X, X[:, :1])
    core.near(0.0, 1.0)
    core.share("a", 1, 2)
    core.stream(0, "a")
    core.to_strict_json({"a": 1.0})
    core.safe_point()
    core.convert_fields(SimpleNamespace(a=[1.0, 2.0]), a=(2,))
    anatomy.returned_tensors([X])
    instruments.apply_norm_mode(model, core.NormMode.EVAL, lambda: None)
    instruments.checked_outputs(X)
    instruments.counted(1)
    instruments.evaluate(model, batch, loss)
    instruments.norm_layers_as_is(model, core.NormMode.EVAL)
    instruments.run_model(model, batch)
    instruments.slice_batch(batch, 0, 2)
    instruments.tensors_in(batch)
    with instruments.show_progress("a"), instruments.full_precision():
        pass
    with instruments.preserve_process():
        instruments.reseed(0)


EXAMPLES = [
    verdicts, readings, drawings, nets, closed_forms, datasets, page_parts, a_study,
    surveys, parts_of_studies, used_by_the_library,
]  # fmt: skip
