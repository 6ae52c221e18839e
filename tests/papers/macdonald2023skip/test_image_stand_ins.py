"""Tables 2 and 3 end to end on stand-in images, and counterfactuals."""

from dataclasses import replace

import numpy as np
import pytest

from tests.papers.macdonald2023skip.image_counterfactuals import (
    made_rows,
    paper_error,
    paper_loss,
    verdict,
)
from tests.studies.counterfactuals import check_errors, check_verdicts
from theodolite import data
from theodolite.core import DataError, PredictedAndMeasured, Rows
from theodolite_papers.macdonald2023skip.image_tables_cifar100 import STUDY as CIFAR100
from theodolite_papers.macdonald2023skip.image_tables_imagenet import STUDY as IMAGENET
from theodolite_papers.macdonald2023skip.shared.image_training import images_of

STUDIES = {"cifar100": CIFAR100, "imagefolder": IMAGENET}


@pytest.fixture
def stand_in():
    """Provide coloured noise under the name of a dataset for as long as a test runs."""
    made = []

    def provide(name, side, classes, count=32):
        rng = np.random.default_rng(0)
        images_of.cache_clear()
        for split in ("train", "test"):
            labels = np.arange(count) % classes
            shade = rng.integers(0, 200, size=(classes, 1, 1, 3))[labels]
            pixels = shade + rng.integers(0, 56, size=(count, side, side, 3))
            data.register_dataset(
                data.Dataset(
                    name=name,
                    split=split,
                    inputs=pixels.astype(np.uint8),
                    labels=labels,
                    class_names=tuple(map(str, range(classes))),
                    origin="a stand-in",
                )
            )
            made.append((name, split))

    yield provide
    images_of.cache_clear()
    for name, split in made:
        data.unregister_dataset(name, split)


@pytest.mark.parametrize(("name", "side"), [("cifar100", 16), ("imagefolder", 32)])
def test_a_table_is_trained_and_judged_where_its_images_are(stand_in, name, side):
    """The paper's preset but for width, batch and length: every part of it runs."""
    stand_in(name, side, classes=4)
    study = STUDIES[name]
    small = {"width": 2, "epochs": 3, "batch_size": 16, "rates": (0.05,), "n_seeds": 2}
    here = {"device": "cpu", "precision": "float32"}
    config = replace(study.presets["paper"], **small, **here)
    rows = Rows(
        {**cell, **row}
        for cell in study.cells(config)
        for row in study.of_cell(config, cell)
    )
    both = PredictedAndMeasured(study.predict(config), rows)
    finished = rows.where(quantity="reached", status="finished")
    assert finished.column("value") == [3] * 4
    assert set(rows.where(quantity="parameters").values()) == {
        both.predicted.only(quantity="parameters")["value"]
    }
    for claim in study.claims:
        if claim.name.startswith(("faster", "same", "better-on")):
            judged = claim.rule(both).judged
            assert all(leaf.quantity.n == 2 for leaf in judged.leaves), claim.name
    cells = [row["label"] for row in study.compare(both)]
    assert "loss, modified, rate 0.05" in cells
    assert study.drawings[0].draw(study.drawings[0].table(both)).axes


def test_images_of_too_many_classes_are_refused_in_one_sentence(stand_in):
    stand_in("cifar100", 8, classes=12)
    config = replace(
        CIFAR100.presets["paper"], classes=10, device="cpu", precision="float32"
    )
    with pytest.raises(DataError, match="has 12 classes and 3 channels") as caught:
        CIFAR100.measure(config, CIFAR100.cells(config)[0])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["image_tables_cifar100", "image_tables_imagenet"])
def test_without_the_images_nothing_is_run(smoke_root, name):
    study = {"image_tables_cifar100": CIFAR100}.get(name, IMAGENET)
    wanted: dict = {claim.name: "NOT RUN" for claim in study.claims}
    if study is IMAGENET:  # what is printed needs no images
        wanted |= {
            "one-row-two-counts": ("FAILS", "HOLDS"),
            "better-in-print": "UNDECIDED",
        }
    check_verdicts(smoke_root, name, wanted)
    check_errors(smoke_root, name)


def swapped(rate, scale, trial, epoch):
    return paper_loss(rate, 1.0 - scale, trial, epoch)


def better(rate, scale, trial, name):
    return paper_error(rate, scale, trial, name) - 0.02 * scale


def worse(rate, scale, trial, name):
    return paper_error(rate, scale, trial, name) + 0.02 * scale


def lost(rate, scale, trial):
    return "diverged" if rate == 0.2 and scale else "finished"


def good(rate, scale, trial, epoch):
    return paper_loss(0.1 if rate == 0.2 else rate, scale, trial, epoch)


def of(study, *given, **settings):
    """Rows of a counterfactual on the images of a study."""
    name = next(key for key, value in STUDIES.items() if value is study)
    return made_rows(*given, dataset=name, **settings)


@pytest.mark.parametrize(
    ("study", "name", "rows", "wanted"),
    [
        (CIFAR100, "faster-on-cifar100", of(CIFAR100), "HOLDS"),
        (CIFAR100, "faster-on-cifar100", of(CIFAR100, swapped), "FAILS"),
        (CIFAR100, "same-accuracy-on-cifar100", of(CIFAR100), "HOLDS"),
        (CIFAR100, "same-accuracy-on-cifar100", of(CIFAR100, error=worse), "FAILS"),
        (IMAGENET, "faster-on-imagenet", of(IMAGENET), "HOLDS"),
        (IMAGENET, "faster-on-imagenet", of(IMAGENET, swapped), "FAILS"),
        (IMAGENET, "better-on-imagenet", of(IMAGENET, error=better), "HOLDS"),
        (IMAGENET, "better-on-imagenet", of(IMAGENET, error=worse), "FAILS"),
        (
            IMAGENET,
            "modified-fails-at-0.2",
            of(IMAGENET, good, trials=8, status=lost),
            "HOLDS",
        ),
        (IMAGENET, "modified-fails-at-0.2", of(IMAGENET, good, trials=8), "FAILS"),
    ],
)
def test_each_verdict_can_turn(study, name, rows, wanted):
    assert verdict(study, name, rows) == (wanted, None)
    other = Rows({**row, "dataset": "digits"} for row in rows)
    assert verdict(study, name, other) == ("NOT RUN", None)
