"""A batch norm frozen by eval mode inside a training network stays frozen."""

import pytest
import torch
from torch import nn

from theodolite.instruments import extreme_eigenvalues
from theodolite.survey import Survey, compare, survey, watch

X = torch.randn(16, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = torch.arange(16) % 3
LOSS = nn.CrossEntropyLoss()


class Noise(nn.Module):
    """Draws in train mode, by a function of torch."""

    def forward(self, x):
        return nn.functional.dropout(x, 0.5, self.training)


def network(*drawing):
    """Return a fine-tuned network: the norm of its frozen stem is in eval mode."""
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(),
        nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Tanh(), *drawing, nn.Linear(6, 3),
    ).double()  # fmt: skip
    model[1].running_mean.add_(0.7)
    model[1].running_var.mul_(3.0)
    model[1].eval()
    return model


def modes(model):
    return [module.training for module in model.modules()]


def mixed_loss(model):
    """Return the loss with each norm in its mode and nothing drawn."""
    layers = [m for m in model if not isinstance(m, nn.Dropout | Noise)]
    with torch.no_grad():
        z = layers[0](X)
        z = nn.functional.batch_norm(
            z, layers[1].running_mean, layers[1].running_var, layers[1].weight,
            layers[1].bias, training=False,
        )  # fmt: skip
        z = layers[3](torch.tanh(z))
        z = (z - z.mean(0)) / (z.var(0, correction=0) + layers[4].eps).sqrt()
        z = torch.tanh(layers[4].weight * z + layers[4].bias)
        return float(LOSS(layers[-1](z), Y))


def top_of(model, mode):
    model = nn.Sequential(*(m for m in model if not isinstance(m, nn.Dropout | Noise)))
    given = {"loss": LOSS, "norm_mode": mode, "ends": "largest", "tol": 1e-8}
    return float(extreme_eigenvalues(model, (X, Y), **given).eigenvalues[0])


@pytest.mark.parametrize("drawing", [(), (nn.Dropout(0.5), Noise())], ids=["", "drawn"])
def test_a_survey_measures_the_network_that_is_trained(drawing, tmp_path):
    model = network(*drawing)
    before, wanted = modes(model), ["signal", "curvature"]
    result = survey(model, (X, Y), loss=LOSS, measures=wanted, progress=False)
    assert modes(model) == before
    assert result.number("loss")["value"] == pytest.approx(mixed_loss(model), rel=1e-12)
    top = result.number("largest_eigenvalue")
    assert top["value"] == pytest.approx(top_of(model, "as_is"), abs=top["error"])
    assert abs(top_of(model, "batch") - top["value"]) > top["error"]
    assert result.norm_mode == top["norm_mode"] == "as_is"
    assert result.norm_layers == {"train": ("4",), "eval": ("1",)}
    assert top["norm_layers"] == "1 in train, 1 in eval"
    assert "norms: 1 in train, 1 in eval mode" in str(result)
    assert ("random_layers" in result.settings) == bool(drawing)
    result.to_json(tmp_path / "found.json")
    assert Survey.from_json(tmp_path / "found.json").to_dict() == result.to_dict()
    result.to_html(tmp_path / "found.html")
    page = (tmp_path / "found.html").read_text(encoding="utf-8")
    assert "norms: 1 in train, 1 in eval mode" in page
    assert "<dt>norms in eval mode</dt><dd>1</dd>" in page


def test_surveys_in_different_modes_are_not_compared():
    given = {"loss": LOSS, "measures": ["signal"], "progress": False}
    first = survey(network(), (X, Y), **given)
    same = compare(first, survey(network(), (X, Y), **given))
    assert (same.not_compared, same.caveats) == ((), ())
    other = network()
    other[1].train()
    unlike = {
        "norms in train mode": survey(other, (X, Y), **given),
        "norms in batch mode": survey(network(), (X, Y), norm_mode="batch", **given),
    }
    for modes_of_second, second in unlike.items():
        comparison = compare(first, second)
        (said,) = comparison.not_compared
        modes_of_both, _, names = said.partition(": ")
        assert (
            modes_of_both == f"norms in eval and train mode against {modes_of_second}"
        )
        compared = set(comparison.rows().column("quantity"))
        assert {"loss", "forward_rms"} <= set(names.split(", "))
        assert not compared & set(names.split(", "))


def test_a_watch_measures_the_network_that_is_trained():
    model = network(nn.Dropout(0.5), Noise())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    given = {"loss": LOSS, "batches": (X, Y), "measures": ["signal", "curvature"]}
    with watch(model, optimizer, every=10, **given) as watched:
        wanted = mixed_loss(model), top_of(model, "as_is"), top_of(model, "batch")
        optimizer.step()
        before = modes(model)
    course = watched.course()
    assert course.failures == {}
    names = ("loss", "largest_eigenvalue")
    loss, sharp = (watched.rows().where(quantity=name)[0] for name in names)
    assert loss["value"] == pytest.approx(wanted[0], rel=1e-12)
    assert sharp["value"] == pytest.approx(wanted[1], abs=sharp["error"])
    assert abs(wanted[2] - sharp["value"]) > sharp["error"]
    assert sharp["norm_layers"] == "1 in train, 1 in eval"
    assert course.to_dict()["norm_layers"] == {"train": ["4"], "eval": ["1"]}
    assert "norms: 1 in train, 1 in eval mode" in str(course)
    assert modes(model) == before
