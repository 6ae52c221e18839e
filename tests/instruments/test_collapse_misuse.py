"""What is no features, labels or head is refused in a sentence."""

import pytest
import torch

from tests.instruments.drawn_features import FOLDED, KEPT, drawn, read
from theodolite.core import ConfigError, MeasurementError, UnknownNameError
from theodolite.instruments import CollapseMeter

H, Y, HEAD = drawn(3, 4, 12)
MISUSE = {
    "float labels": (lambda m: m.update(H, Y / 2), r"one is 0\.?5?, wanted|wanted are"),
    "labels below -1": (lambda m: m.update(H, Y - 3), "reach from -3"),
    "signs and zero": (lambda m: m.update(H, Y - 1), "wanted are -1 and 1"),
    "words": (lambda m: m.update(H, ["a"] * 12), "labels came as list"),
    "complex labels": (lambda m: m.update(H, Y + 0j), "complex"),
    "one-hot": (lambda m: m.update(H, torch.eye(3)[Y]), "argmax"),
    "one class": (lambda m: (m.update(H, 0 * Y), m.compute()), "class 0 alone"),
    "few labels": (lambda m: m.update(H, Y[:5]), "a row of features"),
    "whole features": (lambda m: m.update(Y[:, None], Y), "real floats"),
    "no features": (lambda m: m.update("abc", Y), "real floats"),
    "other width": (lambda m: (m.update(H, Y), m.update(H[:, :2], Y)), "width 2"),
    "nan": (lambda m: (m.update(H * float("nan"), Y), m.compute()), "NaN"),
    "no variance": (
        lambda m: (m.update(torch.ones(12, 4), Y), m.compute()), "zero variance",
    ),
    "weights": (lambda m: m.update(H, Y, weights=torch.ones(3)), "weights came"),
    "negative weights": (lambda m: m.update(H, Y, weights=-torch.ones(12)), "from 0"),
    "decisions": (lambda m: m.update(H, Y, decisions=Y[:3]), "3 decisions"),
    "other data": (
        lambda m: (m.update(H, Y), m.compute(other=torch.ones(2, 3))), "other features",
    ),
    "none": (lambda m: m.compute(), "no features came"),
}  # fmt: skip


@pytest.mark.parametrize("feature_bytes", [KEPT, FOLDED])
@pytest.mark.parametrize("name", MISUSE)
def test_misuse_is_one_sentence(name, feature_bytes):
    act, words = MISUSE[name]
    with pytest.raises(MeasurementError, match=words) as said:
        act(CollapseMeter(feature_bytes=feature_bytes))
    assert "\n" not in str(said.value)


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"classes": 1}, MeasurementError, "at least 2"),
        ({"centre": "middle"}, UnknownNameError, "did you mean|known"),
        ({"feature_bytes": -1}, ConfigError, "from 0 up"),
        ({"head": torch.ones(3)}, MeasurementError, "one row per class"),
        ({"head": (torch.ones(3, 2), torch.ones(2))}, MeasurementError, "2 biases"),
        ({"head": torch.full((3, 2), torch.nan)}, MeasurementError, "finite"),
    ],
)
def test_settings_out_of_range(settings, kind, words):
    with pytest.raises(kind, match=words):
        CollapseMeter(**settings)


def test_a_label_past_the_head_and_a_width_that_it_does_not_take():
    with pytest.raises(MeasurementError, match="a label is 2 and there are 2"):
        CollapseMeter(head=HEAD[0][:2]).update(H, Y)
    with pytest.raises(MeasurementError, match="the head takes 4"):
        CollapseMeter(head=HEAD[0]).update(H[:, :2], Y)


def test_features_that_are_written_to_later_are_noticed():
    h = H.clone()
    meter, at_once = CollapseMeter(), CollapseMeter(feature_bytes=0)
    for each in (meter, at_once):
        each.update(h, Y)
    h.add_(1)
    with pytest.raises(MeasurementError, match="written to"):
        meter.compute()
    assert at_once.compute().samples == 12


def test_ignored_labels_do_not_count():
    labels = torch.cat([Y, torch.full((3,), -100)])
    h = torch.cat([H, torch.full((3, 4), 1e9, dtype=torch.float64)])
    found, wanted = read(h, labels), read(H, Y)
    assert found.nc1_variability == wanted.nc1_variability
    assert found.samples == 12
