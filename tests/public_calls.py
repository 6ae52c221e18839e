"""One table of all public functions that take a model, each as a short call.

A call takes a model and a norm mode; those of ``NET`` take the same network.
"""

import random
from functools import partial
from types import SimpleNamespace

import torch
from torch import nn

from theodolite import (
    anatomy,
    certificates,
    instruments,
    paths,
    surgery,
    survey,
    training,
)
from theodolite.core import ClassifierBlueprint, ShortcutBlueprint
from theodolite.training import probes

LOSS = nn.CrossEntropyLoss()
X = torch.linspace(-1, 1, 18).reshape(6, 3).sin()
Y = torch.arange(6) % 3
EXACT = X.double()


class Net(nn.Module):
    """A residual network with batch norms, which all tools take."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(3, 4)
        self.branch = nn.Sequential(
            nn.BatchNorm1d(4), nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(),
            nn.Linear(4, 4),
        )  # fmt: skip
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        h = self.stem(x)
        return self.head(h + self.branch(h))


class Energy(nn.Module):
    """A quadratic form, with layers."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2, bias=False)

    def forward(self, w):
        return self.layer(w).square().sum(1)


class Projected(nn.Module):
    """A residual network whose skip has weights, without norms."""

    def __init__(self):
        super().__init__()
        self.skip, self.head = nn.Linear(3, 4), nn.Linear(4, 3)
        self.branch = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4))

    def forward(self, x):
        return self.head(self.skip(x) + self.branch(x))


def chain():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)).double()


def energy():
    return Energy().double()


def made(build):
    """Make a model with gradients and mixed modes, the same every time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = build()
    double = next(model.parameters()).dtype == torch.float64
    inputs = (X.double() if double else X)[:, : 2 if build is energy else 3]
    model(inputs).square().sum().backward()
    list(model.modules())[-1].eval()
    return model


def given(mode):
    return {"batches": (X, Y), "loss": LOSS, "norm_mode": mode}


def product(kind, model, mode, **more):
    operator = kind(model, (X, Y), norm_mode=mode, **more)
    return operator @ torch.ones(operator.shape[1], device="cpu")


def preserved(model, mode):
    with instruments.preserve(model):
        model.train(mode == "batch")
        return model(X)


def opened(model, mode):
    with instruments.opened(model, careful=True):
        model.train(mode == "batch")
        return model(X)


def unfused(model, mode):
    with anatomy.unfused(model):
        return model(X)


def along(model, mode):
    probe = instruments.sharpness_along(model, **given(mode), max_matvecs=12)
    return probe(0)


def watched(model, mode):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.0)
    context = survey.watch(
        model, optimizer, 1, loss=LOSS, batches=[(X, Y)], norm_mode=mode,
        measures=["signal"],
    )  # fmt: skip
    with context as watch:
        optimizer.step()
    return watch.rows()


def probed(make, model, mode):
    with training.Watcher([make(norm_mode=mode)]) as watcher:
        return watcher.step(model, loss=1.0, batch=(X, Y), criterion=LOSS)


def tried(model, mode):
    subject = SimpleNamespace(model=model, batches=[(X, Y)], loss=LOSS, optimizer=None)
    return survey.try_advice((), subject, seeds=2, steps=1)


def certified(model, mode):
    data = (EXACT, EXACT)
    drawn = random.getstate()  # by what checks the types of tests
    try:
        return certificates.certificate(model, data, nn.MSELoss(), norm_mode=mode)
    finally:
        random.setstate(drawn)


def guaranteed(model, mode):
    problem = instruments.Problem(model, **given(mode))
    return certificates.guaranteed_step(problem, evaluations=2)


def surveyed(model, mode):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    steps = []

    def step(batch):
        steps.append(len(steps))
        optimizer.zero_grad()
        LOSS(model(batch[0]), batch[1]).backward()
        optimizer.step()

    try:
        return survey.survey(
            model, (X, Y), loss=LOSS, norm_mode=mode, effort="thorough", tries=False,
            optimizer=optimizer, step=step, progress=False,
            measures=["checks", "map", "signal", "norms"],
        )  # fmt: skip
    finally:
        assert steps == []
        assert not optimizer.state


def operation(name, model, mode, **more):
    return getattr(surgery, name)(model, (X, Y), **more)


NET = {
    instruments.Hessian: partial(product, instruments.Hessian, loss=LOSS),
    instruments.GaussNewton: partial(product, instruments.GaussNewton, loss=LOSS),
    instruments.Fisher: partial(product, instruments.Fisher, loss=LOSS),
    instruments.EmpiricalFisher: partial(
        product, instruments.EmpiricalFisher, loss=LOSS
    ),
    instruments.Jacobian: partial(product, instruments.Jacobian),
    instruments.TangentKernel: partial(product, instruments.TangentKernel),
    instruments.BlockJacobian: partial(
        product, instruments.BlockJacobian, block="branch"
    ),
    instruments.hessian: lambda m, mode: instruments.hessian(
        m, **given(mode), params=["stem.bias"]
    ),
    instruments.spectrum: lambda m, mode: instruments.spectrum(
        m, (X, Y), loss=LOSS, norm_mode=mode, params=["stem.bias"]
    ),
    instruments.trace: lambda m, mode: instruments.trace(
        m, **given(mode), max_matvecs=9
    ),
    instruments.diagonal: lambda m, mode: instruments.diagonal(
        m, **given(mode), max_matvecs=9
    ),
    instruments.condition: lambda m, mode: instruments.condition(
        m, (X, Y), loss=LOSS, norm_mode=mode, params=["stem.bias"]
    ),
    instruments.index: lambda m, mode: instruments.index(
        m, (X, Y), loss=LOSS, norm_mode=mode, params=["stem.bias"]
    ),
    instruments.extreme_eigenvalues: lambda m, mode: instruments.extreme_eigenvalues(
        m, **given(mode), max_matvecs=12
    ),
    instruments.spectral_density: lambda m, mode: instruments.spectral_density(
        m, **given(mode), n_probes=2, steps=4
    ),
    instruments.memory_forecast: lambda m, mode: instruments.memory_forecast(
        m, **given(mode)
    ),
    instruments.by_block: lambda m, mode: instruments.by_block(
        instruments.trace, m, (X, Y), norm_mode=mode, loss=LOSS, max_matvecs=6
    ),
    instruments.sharpness_along: along,
    instruments.Problem: lambda m, mode: instruments.trace(
        instruments.Problem(m, **given(mode)), max_matvecs=9
    ),
    instruments.singular_values: lambda m, mode: instruments.singular_values(
        m, X, block="branch", norm_mode=mode
    ),
    instruments.tangent_kernel: lambda m, mode: instruments.tangent_kernel(
        m, X, norm_mode=mode
    ),
    instruments.collapse: lambda m, mode: instruments.collapse(
        m, (X, Y), norm_mode=mode
    ),
    instruments.classifier_norms: lambda m, mode: instruments.classifier_norms(
        m, (X, Y), norm_mode=mode
    ),
    instruments.preserve: preserved,
    instruments.opened: opened,
    anatomy.anatomy: lambda m, mode: anatomy.anatomy(m, X),
    anatomy.record: lambda m, mode: anatomy.record(m, X),
    anatomy.unfused: unfused,
    surgery.change_norms: partial(operation, "change_norms", to="layer"),
    surgery.fold_norms: partial(operation, "fold_norms"),
    surgery.insert_skips: partial(operation, "insert_skips", around="branch.1"),
    surgery.move_norms: partial(operation, "move_norms", to="post"),
    surgery.remove_skips: partial(operation, "remove_skips"),
    surgery.scale_branches: partial(operation, "scale_branches", by=0.5),
    surgery.zero_branches: partial(operation, "zero_branches"),
    paths.lesion: lambda m, mode: paths.lesion(m, X, norm_mode=mode),
    paths.path_ensemble: lambda m, mode: paths.path_ensemble(m, (X, Y), norm_mode=mode),
    paths.unravel: lambda m, mode: paths.unravel(m, X, norm_mode=mode),
    training.sphere_groups: lambda m, mode: training.sphere_groups(
        m, rho=1.0, inputs=X
    ),
    probes.collapse: partial(probed, probes.collapse),
    probes.gradient_norm: partial(probed, lambda norm_mode: probes.gradient_norm()),
    probes.margins: partial(probed, probes.margins),
    probes.norms: partial(probed, lambda norm_mode: probes.norms()),
    probes.sharpness: partial(probed, partial(probes.sharpness, max_matvecs=12)),
    probes.trace: partial(probed, partial(probes.trace, max_matvecs=9)),
    survey.make_subject: lambda m, mode: survey.make_subject(m, None),
    anatomy.summary: lambda m, mode: anatomy.summary(m, **given(mode)),
    survey.survey: surveyed,
    survey.try_advice: tried,
    survey.watch: watched,
}
OTHERS = {
    surgery.add_identity: (Projected, partial(operation, "add_identity")),
    surgery.fixup: (Projected, partial(operation, "fixup", seed=0)),
    certificates.certificate: (chain, certified),
    certificates.guaranteed_step: (Net, guaranteed),
    certificates.recognise: (chain, lambda m, mode: certificates.recognise(
        m, (3,), norm_mode=mode
    )),
    instruments.critical_points: (energy, lambda m, mode: instruments.critical_points(
        m, dimension=2, radius=1.0, starts=8, max_starts=16
    )),
}  # fmt: skip


def trained(model, see):
    return training.train(
        Seen(model, see), (X, Y), optimizer=training.Descent(lr=0.1), steps=2, loss=LOSS
    )


def trained_many(model, see):
    images = training.Images(
        X.reshape(6, 3, 1, 1), Y, X.reshape(6, 3, 1, 1), Y,
        torch.zeros(3), torch.ones(3),
    )  # fmt: skip
    network = nn.Sequential(nn.Flatten(), Seen(model, see))
    recipe = training.Recipe(epochs=1, batch_size=3, rate=0.1)
    return training.train_many([network], images, recipe=recipe, seeds=[0])


def trained_classifiers(model, see):
    plan = ClassifierBlueprint(inputs=(3,), width=4, outputs=3)
    samples = training.LabelledSamples(X.double().numpy(), Y.numpy())
    recipe = training.ClassifierRecipe(epochs=1, batch_size=3, rate=0.1)
    return training.train_classifiers(
        [plan], samples, recipe=recipe, seeds=[0], report=lambda *_: see()
    )


def trained_grid(model, see):
    data = (X.double().numpy(), X.double().numpy())
    return training.train_grid(
        ShortcutBlueprint(width=3, depth=2), data, {"seed": [0], "lr": [0.1]}, steps=2,
        probes=[training.Probe("seen", lambda _: see() or 0.0)], jobs=0,
    )  # fmt: skip


def descended(model, see):
    problem = instruments.Problem(Seen(model, see), **given("batch"))
    return certificates.CertifiedDescent(problem, evaluations=2).step((X, Y))


class Seen(nn.Module):
    """A model that calls a function before each pass."""

    def __init__(self, model, see):
        super().__init__()
        self.model, self.see = model, see

    def forward(self, x):
        self.see()
        return self.model(x)


# These change a model on purpose; a function is called inside, before each pass.
TRAINING = {
    certificates.CertifiedDescent: descended,
    training.train: trained,
    training.train_many: trained_many,
    training.train_classifiers: trained_classifiers,
    training.train_grid: trained_grid,
}
CALLS = {call: (Net, run) for call, run in NET.items()} | OTHERS
# These change the model on purpose, or are parts of other calls.
NOT_HERE = {
    "apply_norm_mode", "loss_of_batch", "norm_layers_as_is", "evaluate", "run_model",
    "optimizer_of", "opened_model", "loss_of",
}  # fmt: skip
# And these run none of its layers.
WITHOUT_PASSES = {certificates.recognise, probes.gradient_norm, probes.norms}
PACKAGES = (
    anatomy,
    certificates,
    instruments,
    paths,
    surgery,
    survey,
    training,
    probes,
)
TAKEN = {"model", "models", "system", "energy", "operator", "subject", "problem"}
