"""The accumulator of neural collapse against the textbook, however data comes."""

import os

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from tests.instruments.drawn_features import FOLDED, KEPT, drawn, near, read
from tests.instruments.ranks import launch
from tests.instruments.textbook_collapse import simplex_distance, textbook
from theodolite.core import MeasurementError
from theodolite.instruments import CollapseMeter, Team
from theodolite.instruments.classifiers import class_deviations as kept_features
from theodolite.instruments.classifiers.features import FeatureBatch


@pytest.mark.parametrize("feature_bytes", [KEPT, FOLDED])
@pytest.mark.parametrize(
    ("classes", "width"), [(2, 5), (4, 7), (9, 3), (30, 16)], ids=str
)
def test_every_number_is_the_textbook_one(classes, width, feature_bytes):
    h, labels, head = drawn(classes, width, 300)
    reading = read(h, labels, head, pieces=3, feature_bytes=feature_bytes)
    near(reading, textbook(h, labels, *head), rtol=1e-9, atol=1e-12)
    assert reading.nc1_variability_error < 1e-11 * reading.nc1_variability
    assert reading.nc4_disagreement_error == 0
    assert reading.class_weight.sum() == 300


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shift", [0.0, 30.0])
def test_coarse_features_are_read_as_exactly(dtype, shift):
    h, labels, head = drawn(5, 40, 2000, shift=shift, dtype=dtype)
    reading = read(h, labels, head, pieces=4)
    wanted = textbook(h.double(), labels, *head)
    near(reading, wanted, rtol=1e-6)
    for name in ("nc1_variability", "nc1_cdnv", "nc1_noise"):
        off = abs(getattr(reading, name) - wanted[name])
        assert off <= getattr(reading, f"{name}_error")


@pytest.mark.parametrize("feature_bytes", [KEPT, FOLDED])
def test_deep_collapse_in_float64(feature_bytes):
    generator = torch.Generator().manual_seed(0)
    draw = {"generator": generator, "dtype": torch.float64}
    means, labels = torch.randn(6, 10, **draw), torch.arange(600) % 6
    strays = 1e-10 * torch.randn(600, 10, **draw)
    h = means[labels] + strays
    # What was really added, after the sum was rounded.
    exact = textbook((h - means[labels]) * 2.0**30, labels)
    truth = textbook(h, labels)
    reading = read(h, labels, pieces=7, feature_bytes=feature_bytes)
    assert 1e-22 < reading.nc1_variability < 1e-18
    near(reading, {"nc1_variability": truth["nc1_variability"]}, rtol=1e-6, atol=0)
    variance = reading.class_variance.mean() * 2.0**60
    assert variance == pytest.approx(exact["nc1_noise"] * _between(h, means, labels))


def _between(h, means, labels):
    """Return the trace between class means of the scaled strays."""
    strays = ((h - means[labels]) * 2.0**30).numpy()
    own = np.stack([strays[labels.numpy() == c].mean(0) for c in range(len(means))])
    return ((own - own.mean(0)) ** 2).sum(1).mean()


def test_deep_collapse_in_float32_is_that_of_the_numbers_given():
    generator = torch.Generator().manual_seed(0)
    means, labels = torch.randn(5, 20, generator=generator), torch.arange(500) % 5
    h = means[labels] * (1 + 2e-7 * torch.randn(500, 20, generator=generator))
    reading = read(h, labels, pieces=3)
    assert 0 < reading.nc1_variability < 1e-13
    near(reading, textbook(h.double(), labels), rtol=1e-6, atol=1e-15)


@pytest.mark.parametrize("spread", [1.0, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
def test_all_the_way_into_collapse_in_float32(spread):
    h, labels, head = drawn(5, 40, 4000, spread=spread, shift=3.0, dtype=torch.float32)
    reading = read(h, labels, head, pieces=3)
    wanted = textbook(h.double(), labels, *head)
    near(reading, wanted, rtol=1e-6, atol=1e-15)
    for name in ("nc1_variability", "nc1_noise"):
        off = abs(getattr(reading, name) - wanted[name])
        assert off <= getattr(reading, f"{name}_error") < 2e-6 * wanted[name]


def test_equal_features_have_collapsed_entirely():
    means, labels = torch.eye(4) * 3 + 7, torch.arange(40) % 4
    for feature_bytes in (KEPT, FOLDED):
        reading = read(means[labels], labels, means, feature_bytes=feature_bytes)
        assert reading.nc1_variability == pytest.approx(0, abs=1e-28)
        assert reading.nc1_cdnv == pytest.approx(0, abs=1e-28)
        assert reading.nearest_accuracy == 1
        near(reading, {"nc2_mean_simplex": 0, "nc2_mean_gap": 0, "energy": 0}, 0, 1e-7)


def test_a_simplex_is_a_polygon_on_the_plane():
    classes = 5
    simplex = torch.eye(classes, dtype=torch.float64) - 1 / classes
    labels = torch.arange(2 * classes) % classes
    reading = read(simplex[labels], labels, simplex * 4)
    turns = 2 * np.pi * np.arange(classes) / classes
    polygon = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    np.testing.assert_allclose(reading.plane, polygon, atol=1e-12)
    np.testing.assert_allclose(reading.head_plane, polygon, atol=1e-12)
    near(reading, {"nc3_duality": 0, "nc3_simplex": 0, "nc3_alignment": 0}, 0, 1e-12)
    assert reading.cosines.sum() == pytest.approx(1)
    # A rival: an orthogonal frame, not centred, is no simplex until it is centred.
    assert read(torch.eye(5)[labels], labels, torch.eye(5)).nc2_head_gap > 0.2


@settings(max_examples=12)
@given(
    order=st.permutations(range(90)),
    cuts=st.lists(st.integers(0, 90), max_size=6),
    meters=st.integers(1, 3),
    feature_bytes=st.sampled_from([KEPT, FOLDED, 2500]),
    weighted=st.booleans(),
)
def test_no_split_order_or_merge_changes_anything(
    order, cuts, meters, feature_bytes, weighted
):
    h, labels, head = drawn(3, 6, 90)
    mass = torch.arange(90.0) % 4 + (0 if weighted else 1)
    mass = mass if weighted else torch.ones(90)
    whole = CollapseMeter(head=head)
    whole.update(h, labels, weights=mass)
    wanted = whole.compute()
    parts = [
        CollapseMeter(head=head, feature_bytes=feature_bytes) for _ in range(meters)
    ]
    places = [torch.tensor(p) for p in np.split(np.array(order), sorted(cuts))]
    for i, place in enumerate(places):
        place = place.long()
        given = {} if not weighted else {"weights": mass[place]}
        parts[i % meters].update(h[place], labels[place], **given)
    first, *others = parts
    for other in others:
        first.merge(other)
    found = first.compute()
    for name in ("nc1_variability", "nc1_cdnv", "nc2_mean_simplex", "nc3_duality"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=1e-11)
    np.testing.assert_allclose(found.class_weight, wanted.class_weight, rtol=1e-12)
    np.testing.assert_allclose(found.class_variance, wanted.class_variance, rtol=1e-11)
    gap = abs(found.nc4_disagreement - wanted.nc4_disagreement)
    assert gap <= found.nc4_disagreement_error + 1e-12


def test_weights_count_samples_as_often():
    h, labels, head = drawn(3, 5, 60)
    mass = torch.arange(60) % 3
    meter, often = CollapseMeter(head=head), CollapseMeter(head=head)
    meter.update(h, labels, weights=mass)
    often.update(h.repeat_interleave(mass, 0), labels.repeat_interleave(mass))
    for name in ("nc1_variability", "nc1_cdnv", "nc4_disagreement", "accuracy"):
        left, right = (getattr(m.compute(), name) for m in (meter, often))
        assert left == pytest.approx(right, rel=1e-12)


def test_folding_gives_the_rest_as_an_interval_until_it_is_recounted():
    h, labels, head = drawn(3, 5, 60)
    truth = read(h, labels, head).nc4_disagreement
    meter = CollapseMeter(head=head, feature_bytes=0)
    meter.update(h, labels)
    first = meter.compute()
    assert (first.nc4_disagreement, first.nc4_disagreement_error) == (0.5, 0.5)
    meter.recount(h[:30], labels[:30])
    half = meter.compute()
    assert abs(half.nc4_disagreement - truth) <= half.nc4_disagreement_error == 0.25
    meter.recount(h[30:], labels[30:])
    assert meter.compute().nc4_disagreement == truth


def test_thousands_of_classes():
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(2000, 24, generator=generator)
    labels = torch.arange(4000) % 2000
    h = means[labels] + 0.1 * torch.randn(4000, 24, generator=generator)
    reading = read(h, labels, pieces=3)
    exact = h.double().numpy().reshape(2, 2000, 24)
    centres = exact.mean(0)
    within = ((exact - centres) ** 2).sum((0, 2)) / 2
    np.testing.assert_allclose(reading.class_variance, within, rtol=1e-6)
    centred = centres - centres.mean(0)
    between = centred.T @ centred / 2000
    apart = (exact - centres).reshape(-1, 24)
    ratio = np.trace(np.linalg.solve(between, apart.T @ apart / 4000)) / 2000
    assert reading.nc1_variability == pytest.approx(ratio, rel=1e-6)
    assert reading.nearest_accuracy > 0.99
    assert len(reading.classes) == 2000


def test_more_classes_than_a_block_of_rows():
    h, labels, _ = drawn(600, 9, 1200)
    reading = read(h, labels)
    means = np.stack([h[labels == c].mean(0) for c in range(600)])
    centred = means - means.mean(0)
    wanted = simplex_distance(centred @ centred.T)
    assert reading.nc2_mean_simplex == pytest.approx(wanted, rel=1e-10)
    units = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    cosines = (units @ units.T)[~np.eye(600, dtype=bool)]
    assert reading.nc2_mean_angles == pytest.approx(cosines.std(), rel=1e-10)
    assert reading.nc2_mean_gap == pytest.approx(np.abs(cosines + 1 / 599).mean())
    energy = -0.5 * np.log(2 - 2 * cosines).mean() + 0.5 * np.log(2 + 2 / 599)
    assert reading.energy == pytest.approx(energy, rel=1e-9)
    shares = np.histogram(cosines.astype(np.float32), len(reading.cosines), (-1, 1))[0]
    np.testing.assert_allclose(reading.cosines, shares / cosines.size, atol=1e-4)


@pytest.mark.parametrize(("scale", "unsure"), [(1e-9, 1), (1e-4, 0.1)])
def test_decisions_too_close_for_float32_are_those_of_float64(scale, unsure):
    generator = torch.Generator().manual_seed(0)
    draw = torch.randn(2, 300, 16, generator=generator)
    # Two classes that mirror one another; half of the samples all but on the border.
    far, border = 1 + 0.1 * draw[0], scale * draw[1]
    h = torch.cat([far, border, -far, -border])
    labels = torch.arange(1200) // 600
    head = torch.stack([far[0], -far[0]]), torch.zeros(2)
    reading, wanted = read(h, labels, head), textbook(h.double(), labels, *head)
    assert 0.6 < wanted["nearest_accuracy"] < 0.9
    for name in ("nearest_accuracy", "nc4_disagreement"):
        error = getattr(reading, f"{name}_error")
        assert abs(getattr(reading, name) - wanted[name]) <= error < unsure
    assert reading.accuracy == wanted["accuracy"]
    assert reading.nearest_accuracy_error > 0


def test_absent_classes_are_left_out():
    h, labels, (weight, _) = drawn(3, 5, 60)
    more = torch.cat([weight[:1], weight + 9, weight[1:]]), torch.zeros(6)
    moved = torch.tensor([0, 4, 5])[labels]
    chosen = more[0][[0, 4, 5]], more[1][[0, 4, 5]]
    found, wanted = read(h, moved, more), textbook(h, labels, *chosen)
    near(found, {k: v for k, v in wanted.items() if k[:3] != "acc"}, 1e-9, 1)
    for name in ("nc1_variability", "nc2_head_simplex", "nc3_simplex"):
        assert getattr(found, name) == pytest.approx(wanted[name], rel=1e-9)
    assert found.classes.tolist() == [0, 4, 5]
    decided = (h @ more[0].T + more[1]).argmax(1)
    assert found.accuracy == pytest.approx(float((decided == moved).double().mean()))


def test_two_classes_told_by_a_sign():
    h, labels, _ = drawn(2, 5, 60)
    row = torch.randn(1, 5).double()
    signed = CollapseMeter(head=(row, [0.1]))
    signed.update(h, 2.0 * labels - 1)
    two = torch.cat([-row, row]), torch.tensor([-0.1, 0.1])
    wanted = textbook(h, labels, *two)
    near(signed.compute(), wanted, rtol=1e-9, atol=1e-12)
    # With two classes the means are a simplex whatever they are: it tests nothing.
    assert signed.compute().nc2_mean_simplex < 1e-12


def test_centre_of_samples_and_of_classes():
    h, labels, _ = drawn(3, 5, 60)
    kept = (labels > 0) | (torch.arange(60) % 3 == 0)
    h, labels = h[kept], labels[kept]
    by_samples = read(h, labels, centre="samples")
    means = torch.stack([h[labels == c].mean(0) for c in range(3)])
    wanted = (means - h.mean(0)).norm(dim=1).numpy()
    np.testing.assert_allclose(by_samples.class_distance, wanted, rtol=1e-12)
    by_classes = read(h, labels).class_distance
    assert np.abs(by_classes / wanted - 1).max() > 1e-3


def test_other_data_and_reset():
    h, labels, _ = drawn(3, 5, 60)
    other = torch.randn(9, 5).double()
    meter = CollapseMeter()
    meter.update(h, labels)
    means = torch.stack([h[labels == c].mean(0) for c in range(3)])
    cosines = torch.cosine_similarity(means, other.mean(0)[None]).abs().mean()
    found = meter.compute(other=other)
    assert found.nc5_outside == pytest.approx(float(cosines), rel=1e-12)
    assert np.isnan(meter.compute().nc5_outside)
    meter.reset()
    with pytest.raises(MeasurementError, match="no features came"):
        meter.compute()


@pytest.mark.parametrize("feature_bytes", [KEPT, FOLDED])
def test_meters_of_signs_merge_and_those_of_other_labels_do_not(feature_bytes):
    h, labels, _ = drawn(2, 5, 60)
    signs = 2 * labels - 1
    meters = [CollapseMeter(feature_bytes=feature_bytes) for _ in range(3)]
    meters[0].update(h[:20], signs[:20])
    meters[1].update(h[20:], signs[20:])
    meters[2].update(h, labels)
    meters[0].merge(meters[1])
    wanted = textbook(h, labels)["nc1_variability"]
    assert meters[0].compute().nc1_variability == pytest.approx(wanted, rel=1e-9)
    with pytest.raises(MeasurementError, match="wanted are -1 and 1"):
        meters[0].merge(meters[2])
    other = CollapseMeter()
    other.update(h[:, :3], labels)
    with pytest.raises(MeasurementError, match="width 3"):
        meters[2].merge(other)


def _part_of(rank, size, store, out, feature_bytes, cut):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=size
    )
    h, labels, head = drawn(3, 6, 90)
    meter = CollapseMeter(head=head, feature_bytes=feature_bytes)
    part = slice(0, cut) if rank else slice(cut, 90)
    meter.update(h[part], labels[part])
    reading = meter.compute(group=True)
    reading.save(f"{out}-{rank}.npz")
    torch.distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("feature_bytes", "cut"), [(KEPT, 70), (FOLDED, 70), (KEPT, 0), (FOLDED, 0)]
)
def test_processes_that_hold_a_part_each(feature_bytes, cut, tmp_path):
    from theodolite.instruments import Collapse

    arguments = str(tmp_path / "store"), str(tmp_path / "part"), feature_bytes, cut
    assert launch(_part_of, *arguments, size=2) == [0, 0], os.listdir(tmp_path)
    h, labels, head = drawn(3, 6, 90)
    wanted = textbook(h, labels, *head)
    if feature_bytes == FOLDED:
        for name in ("nc4_disagreement", "accuracy", "nearest_accuracy"):
            del wanted[name]
    for rank in (0, 1):
        found = Collapse.load(f"{tmp_path}/part-{rank}.npz")
        near(found, wanted, rtol=1e-9, atol=1e-12)
        assert found.samples == 90


@pytest.mark.parametrize(("dtype", "times"), [(torch.float32, 1), (torch.bfloat16, 0)])
def test_rows_that_were_just_converted_are_not_read_ahead(monkeypatch, dtype, times):
    ahead = []
    monkeypatch.setattr(kept_features, "_read_ahead", ahead.append)
    piece = FeatureBatch(
        features=torch.randn(8, 3).to(dtype), labels=torch.arange(8) % 2
    )
    count = torch.full((2,), 4.0, dtype=torch.float64)
    means, _ = kept_features.class_means([piece], count, 3, Team())
    wanted = piece.features.double()[::2].mean(0)
    assert_close(means[0], wanted, rtol=1e-6, atol=1e-6)
    assert len(ahead) == times
