"""Trackers are told what the run folder holds, and cannot harm the run."""

import json
import logging
import math
import sys
from importlib.util import find_spec

import pytest

from tests.runs.processes import python
from tests.runs.work import spec
from theodolite.core import ConfigError, Rows, UnknownNameError
from theodolite.runs import (
    MLflowTracker,
    RunFolder,
    TensorBoardTracker,
    Tracker,
    Tracking,
    execute,
    tracker_for,
)
from theodolite.runs.progress.trackers import metrics, tag_of, texts
from theodolite.studies import find, plan_study, run_study

CELLS = [{"kind": kind, "trial": trial} for kind in ("a", "b") for trial in range(2)]
SPEC = {
    "paper": "paper2020word",
    "study": "figure",
    "digest": "0123456789ab",
    "scale": "smoke",
    "config": {"width": 8, "rates": [0.1, 0.2]},
}
ROWS = [
    {"quantity": "loss", "lr": 0.5, "step": 7, "value": 2.5, "error": 0.125},
    {"quantity": "loss", "lr": 2.0, "step": 7, "value": float("nan"), "error": None},
    {"quantity": "loss", "lr": 4.0, "step": 7, "value": None},
    {"quantity": "index", "status": "exact", "cpu_s": 1.5, "value": 3},
    {"quantity": "verdict", "claim": "it-grows", "value": "HOLDS"},
]
# What any tracker must hold after the rows were logged at step 4.
NUMBERS = {
    "figure/loss/lr=0.5": (7, 2.5),
    "figure/loss.error/lr=0.5": (7, 0.125),
    "figure/index": (4, 3.0),
    "figure/not_finite": (4, 2.0),
}
VERDICT = "figure/verdict/claim=it-grows"


class Remember:
    """Keep every call."""

    def __init__(self):
        self.events = []

    def start(self, spec):
        self.events.append(("start", spec["study"], len(spec["digest"])))

    def log(self, rows, step):
        self.events.append((step, Rows(rows)))

    def finish(self):
        self.events.append(("finish",))


class Failing(Remember):
    """Raise at one of the calls."""

    def __init__(self, at):
        super().__init__()
        self.at = at
        self.n = 0

    def start(self, spec):
        self._maybe("start")

    def log(self, rows, step):
        self._maybe("log")

    def finish(self):
        self._maybe("finish")

    def _maybe(self, call):
        self.n += 1
        if call == self.at:
            raise RuntimeError("the server\nhas gone")


def work(cell):
    yield {"quantity": "x", "value": float(cell["trial"])}


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "out", spec(width=8))


def test_numbers_and_texts_of_rows():
    values = {m.tag: (m.step, m.value) for m in metrics(ROWS, 4, "figure")}
    assert values == NUMBERS
    assert dict(texts(ROWS, "figure")) == {VERDICT: "HOLDS"}
    assert tag_of({"value": 1.0}, "s") == "s/value"
    odd = [{"quantity": "x", "step": "?", "value": v} for v in (math.inf, [1], True)]
    assert [(m.step, m.value) for m in metrics(odd, 2, "s")] == [(2, 1.0), (2, 2.0)]


def test_each_computed_cell_is_told_at_its_place(folder):
    first = Remember()
    execute(folder, CELLS[1:2], work, jobs=0, trackers=[first])
    again = Remember()
    execute(folder, CELLS, work, jobs=0, trackers=[again])
    assert isinstance(again, Tracker)
    assert [event[0] for event in first.events] == ["start", 0, "finish"]
    assert again.events[0] == ("start", "figure", 12)
    assert [event[0] for event in again.events[1:]] == [0, 2, 3, "finish"]
    assert again.events[2][1] == folder.rows([CELLS[2]])


@pytest.mark.parametrize(("at", "calls"), [("start", 1), ("log", 2), ("finish", 6)])
def test_a_failing_tracker_is_named_once_and_dropped(folder, caplog, at, calls):
    bad, good = Failing(at), Remember()
    with caplog.at_level(logging.WARNING):
        done = execute(folder, CELLS, work, jobs=0, trackers=[bad, good])
    assert done.n_computed == 4
    assert bad.n == calls
    assert len(good.events) == 6
    (record,) = caplog.records
    words = "Failing failed (RuntimeError: the server has gone) and is not called again"
    assert words in record.getMessage()


def test_a_dropped_tracker_stays_dropped(tmp_path, caplog):
    bad = Failing("start")
    tracking = Tracking([bad])
    assert tracking
    for name in "ab":
        folder = RunFolder.create(tmp_path / name, spec(width=8))
        execute(folder, CELLS, work, jobs=0, trackers=tracking)
    assert not tracking
    assert bad.n == len(caplog.records) == 1


def test_trackers_finish_when_the_run_fails(folder):
    def broken(cell):
        raise ValueError("no")

    tracker = Remember()
    with pytest.raises(Exception, match="4 of 4 cells failed"):
        execute(folder, CELLS, broken, jobs=0, trackers=[tracker])
    assert tracker.events[-1] == ("finish",)


def test_a_study_tells_its_verdicts(tmp_path):
    tracker = Remember()
    plan = plan_study(find("around_zero"), scale="smoke")
    svg = {"root": tmp_path, "jobs": 0, "figure_formats": ["svg"]}
    done = run_study(plan, **svg, trackers=[tracker])
    assert [len(t) for t in tracker.events].count(3) == 1, "started more than once"
    step, rows = tracker.events[-2]
    assert step == done.execution.n_computed
    assert {row["claim"]: row["value"] for row in rows} == {
        claim.claim: claim.verdict for claim in done.summary.claims
    }
    assert tracker.events[-1] == ("finish",)


def log_to(tracker):
    tracker.start(SPEC)
    tracker.log(ROWS, 4)
    tracker.finish()
    tracker.finish()  # a second time does nothing


def test_tensorboard_reads_back(tmp_path):
    module = "tensorboard.backend.event_processing.event_accumulator"
    reader = pytest.importorskip(module)
    log_to(TensorBoardTracker(tmp_path))
    (place,) = tmp_path.glob("*/*/*")
    assert place.parts[-3:] == ("paper2020word", "figure", "0123456789ab")
    events = reader.EventAccumulator(str(place)).Reload()
    scalars = {
        tag: [(e.step, e.value) for e in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }
    assert scalars == {tag: [pair] for tag, pair in NUMBERS.items()}
    assert events.Tensors(VERDICT)[0].tensor_proto.string_val == [b"HOLDS"]
    (config,) = events.Tensors("figure/spec")[0].tensor_proto.string_val
    assert json.loads(config.decode().strip("`json\n")) == SPEC


def test_mlflow_reads_back_and_resumes(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    for name in (
        "ALLOW_FILE_STORE",
        "HTTP_REQUEST_TIMEOUT",
        "HTTP_REQUEST_MAX_RETRIES",
    ):
        monkeypatch.setenv(f"MLFLOW_{name}", "5" if "HTTP" in name else "true")
    uri = f"file:{tmp_path}/store"
    log_to(MLflowTracker(uri))
    second = MLflowTracker(uri)
    second.start(SPEC)
    second.log([{"quantity": "index", "value": 5.0}], 9)
    second.finish()
    client = mlflow.MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("theodolite")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "figure smoke"
    assert run.data.params["config.width"] == "8"
    assert run.data.tags["figure/verdict/claim-it-grows"] == "HOLDS"
    for tag, (step, value) in NUMBERS.items():
        history = client.get_metric_history(run.info.run_id, tag.replace("=", "-"))
        assert (history[0].step, history[0].value) == (step, value)
    index = client.get_metric_history(run.info.run_id, "figure/index")
    assert [(m.step, m.value) for m in index] == [(4, 3.0), (9, 5.0)]


def test_a_server_that_does_not_answer_stops_nothing(folder, caplog):
    pytest.importorskip("mlflow")
    tracker = MLflowTracker("http://127.0.0.1:9")
    done = execute(folder, CELLS, work, jobs=0, trackers=[tracker])
    assert done.n_computed == 4
    assert "MLflowTracker failed" in caplog.text


# In a process of its own, since the library starts a service and threads; not
# imported here, where torch makes it slow.
WANDB = """
import json, os, pathlib, sys, warnings
warnings.simplefilter("default")
import wandb
from tests.runs.test_tracking import SPEC, log_to, wandb_records
from theodolite.core import RunError
from theodolite.runs import WandbTracker

def told(place):
    log_to(WandbTracker("project", "offline", folder=place))
    return read(place)

def read(place):
    (file,) = place.rglob("*.wandb")
    return [*wandb_records(file), "WANDB_SERVICE" in os.environ]

files = pathlib.Path(sys.argv[1])
files.mkdir()
found = {"first": told(files / "first"), "second": told(files / "second")}
quiet = wandb.Settings(silent=True, console="off")
own = wandb.init(project="own", mode="offline", dir=files, settings=quiet)
log_to(WandbTracker("project", "offline", folder=files / "beside"))
found["going"] = "WANDB_SERVICE" in os.environ
own.log({"after": 1.0})
own.finish()
teardown, wandb.teardown = wandb.teardown, lambda: sys.exit(3)
try:
    told(files / "failing")
except RunError as error:
    found["failing"] = str(error)
teardown()
found["beside"], found["own"] = read(files / "beside"), read(files / "wandb")
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def wandb_found(tmp_path_factory):
    """What trackers left in the files of offline runs, read at once after the end."""
    if find_spec("wandb") is None:
        pytest.skip("wandb is not installed")
    place = tmp_path_factory.mktemp("wandb")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DATA", "CACHE", "CONFIG"):
            patch.setenv(f"WANDB_{name}_DIR", str(place / name.lower()))
        patch.delenv("WANDB_SERVICE", raising=False)
        patch.setenv("WANDB_X_SERVICE_WAIT", "300")  # seconds, for its start
        done = python(WANDB, place / "files")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("run", ["first", "second", "beside"])
def test_wandb_reads_back(wandb_found, run):
    history, summary, project, name, served = wandb_found[run]
    assert {k: v for row in history for k, v in row.items() if k in NUMBERS} == {
        tag: value for tag, (_, value) in NUMBERS.items()
    }
    for row in history:
        for tag in row.keys() & NUMBERS.keys():
            assert row["step"] == NUMBERS[tag][0]
    assert summary[VERDICT] == "HOLDS"
    assert project == "project"
    assert name == "figure smoke"
    assert not served, "the service may still be writing"


def test_wandb_leaves_the_runs_of_others_going(wandb_found):
    assert wandb_found["going"], "the service was shut down under another's run"
    history, _, project, _, served = wandb_found["own"]
    assert [row["after"] for row in history] == [1.0]
    assert project == "own"
    assert not served


def test_a_wandb_service_that_fails_is_told_and_ends_nothing(wandb_found):
    assert "the W&B service ended with code 3" in wandb_found["failing"]


def wandb_records(path):
    """Read a W&B transaction log with its own reader."""
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal.datastore import DataStore

    store = DataStore()
    store.open_for_scan(str(path))
    history, summary, run = [], {}, None
    while (content := store.scan_data()) is not None:
        record = wandb_internal_pb2.Record()
        record.ParseFromString(content)
        kind = record.WhichOneof("record_type")
        if kind == "history":
            history.append(dict(map(pair, record.history.item)))
        elif kind == "summary":
            summary |= dict(map(pair, record.summary.update))
        elif kind == "run":
            run = record.run
    store._fp.close()
    return history, summary, run.project, run.display_name


def pair(item):
    return item.key or "/".join(item.nested_key), json.loads(item.value_json)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("tensorbord:x", UnknownNameError, "did you mean 'tensorboard'"),
        ("nothing", UnknownNameError, "known: mlflow, tensorboard, wandb"),
        ("wandb", ConfigError, "names no project: use wandb:PROJECT"),
        ("mlflow: ", ConfigError, "names no uri: use mlflow:URI"),
    ],
)
def test_bad_names_are_one_sentence(text, error, words):
    with pytest.raises(error, match=words) as caught:
        tracker_for(text)
    assert "\n" not in str(caught.value)


def test_good_names_make_trackers(tmp_path):
    pytest.importorskip("tensorboard")
    assert isinstance(tracker_for(f"tensorboard:{tmp_path}"), TensorBoardTracker)
    pytest.importorskip("mlflow")
    assert isinstance(tracker_for("mlflow:http://host:5000"), MLflowTracker)


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb"])
def test_a_missing_library_is_one_sentence(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=rf"pip install 'theodolite\[{name}\]'"):
        tracker_for(f"{name}:x")
