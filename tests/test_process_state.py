"""Every public call leaves the model and the process as found, however it ends.

Calls end by themselves, by an error inside the model, by a time limit at safe points,
and by Ctrl-C when any function of Python is entered; and they run in several threads.
"""

import ast
import inspect
import signal
import sys
import threading
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sympy  # noqa: F401 (torch imports it late, which adds a warning filter)
import torch
from torch import Tensor, nn
from torch.utils import checkpoint
from torch.utils.data import DataLoader

import theodolite
from tests.instruments.test_preservation import portrait, without_versions
from tests.public_calls import (
    CALLS,
    LOSS,
    NET,
    NOT_HERE,
    PACKAGES,
    TAKEN,
    TRAINING,
    WITHOUT_PASSES,
    Net,
    X,
    Y,
    made,
    trained_many,
)
from theodolite import anatomy, instruments, surgery, survey, training
from theodolite.core import Exclusive, Rows, StopCheck, TheodoliteError
from theodolite.core import process as core_process
from theodolite.data import imagefolder
from theodolite.runs import InProcess
from theodolite.runs.executors.ray import connection
from theodolite.runs.executors.task import Report, State
from theodolite.studies import judging


class TimeIsOver(BaseException):
    """Raised at safe points."""


def name_of(call):
    return f"{call.__module__.split('.')[1]}.{call.__name__}"


SLOW = {survey.survey, survey.try_advice}
every_call = pytest.mark.parametrize("call", CALLS, ids=name_of)


def test_every_public_function_that_takes_a_model_is_tried_here():
    missing = []
    for package in PACKAGES:
        for name in dir(package):
            found = getattr(package, name)
            kind = isinstance(found, type) and issubclass(
                found, instruments.Operator | torch.optim.Optimizer
            )
            if not (inspect.isfunction(found) or kind) or inspect.isabstract(found):
                continue
            takes = set(inspect.signature(found.__init__ if kind else found).parameters)
            tried = found in CALLS or found in TRAINING or name in NOT_HERE
            if takes & TAKEN and not tried:
                missing.append(f"{package.__name__}.{name}")
    assert missing == []


def process():
    """Everything of a process that a call could leave changed."""
    cuda = torch.backends.cuda
    return {
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "autocast": [
            (torch.is_autocast_enabled(d), torch.get_autocast_dtype(d))
            for d in ("cpu", "cuda")
        ],
        "default dtype": torch.get_default_dtype(),
        "threads": torch.get_num_threads(),
        "determinism": torch.get_deterministic_debug_mode(),
        "cudnn": (torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark),
        "kernels": (cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled()),
        "precision": [
            torch._C._get_fp32_precision_getter(device, product)
            for device in ("cuda", "mkldnn")
            for product in ("matmul", "conv", "rnn")
        ],
        "seeds of CUDA": len(torch.cuda._lazy_seed_tracker.get_calls()),
        "anomaly": (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        "fast attention": torch.backends.mha.get_fastpath_enabled(),
        "modes": (
            torch._C._len_torch_function_stack(),
            torch._C._len_torch_dispatch_stack(),
        ),
        "checkpointing": checkpoint._checkpoint_without_reentrant_generator,
        "warning filters": list(warnings.filters),
        "handler": signal.getsignal(signal.SIGINT),
    }


def as_found(model, before):
    """Assert that nothing has changed, and that no thread has to wait."""
    assert without_versions(portrait(model)) == before[0]
    assert process() == before[1]
    free = threading.Thread(target=Exclusive().__enter__, daemon=True)
    free.start()
    free.join(60)
    assert not free.is_alive()
    Exclusive().__exit__(None, None, None)


def state(model):
    return without_versions(portrait(model)), process()


class Watching:
    """Calls a function whenever Python enters one."""

    def __init__(self, see):
        self._see = see

    def __enter__(self):
        sys.setprofile(self._look)

    def __exit__(self, *_):
        sys.setprofile(None)

    def _look(self, frame, event, _):
        if event == "call" and frame.f_code is not Watching.__exit__.__code__:
            self._see(frame.f_code)


def spoil():
    """Change all that code inside of a model could change."""
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(torch.get_num_threads() + 1)
    torch.set_deterministic_debug_mode("warn")
    torch.set_autocast_enabled("cpu", True)
    torch.backends.cudnn.benchmark = not torch.backends.cudnn.benchmark
    torch.backends.mha.set_fastpath_enabled(False)
    torch.set_float32_matmul_precision("medium")
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    warnings.simplefilter("ignore", ResourceWarning)
    torch.rand(1), np.random.rand()  # noqa: NPY002


@every_call
def test_an_error_inside_a_model_that_changed_settings_leaves_nothing_behind(call):
    build, run = CALLS[call]
    model = made(build)
    before, met = state(model), []

    def see(code):
        if code is nn.Linear.forward.__code__:
            met.append(code)
            spoil()
            raise RuntimeError("inside")

    with suppress(RuntimeError, TheodoliteError, Warning), Watching(see):
        run(model, "batch")
    assert met or call in WITHOUT_PASSES
    as_found(model, before)


@pytest.mark.parametrize("error", [None, RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("call", TRAINING, ids=name_of)
def test_training_leaves_the_process_as_found(call, error):
    """Also where the model and what measures it change settings and draw numbers."""
    model, seen = made(Net), []
    before, drawn = process(), portrait(model)[2]

    def see():
        seen.append(torch.rand(1).item())
        spoil()
        torch.set_grad_enabled(True)
        if error is not None:
            raise error("inside")

    with suppress(RuntimeError, KeyboardInterrupt, TheodoliteError, Warning):
        TRAINING[call](model, see)
    assert seen
    assert process() == before
    if call is not training.train:  # which draws as a plain loop does
        assert portrait(model)[2] == drawn


@pytest.fixture
def newer_names():
    """TF32 set by the newer of torch's two sets of names, which do not mix."""
    with instruments.preserve_process():
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        torch.backends.cudnn.conv.fp32_precision = "ieee"
        yield


class Recurrent(nn.Module):
    """A network for which cuDNN is switched off."""

    def __init__(self):
        super().__init__()
        self.layers, self.head = nn.GRU(3, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.layers(x)[0])


@pytest.mark.parametrize(
    ("build", "call"),
    [
        (Net, lambda model: surgery.zero_branches(model, X)),
        (Net, lambda model: trained_many(model, list)),
        (Recurrent, lambda model: NET[instruments.trace](model, "eval")),
    ],
    ids=["surgery", "training", "recurrent"],
)
def test_newer_names_of_tf32_stand_beside_older_ones(build, call, newer_names):
    model = made(build)
    before = process()
    call(model)
    assert process() == before


class WritesToItsInputs(Net):
    """It normalises its inputs in place, as a fresh batch in a loop allows."""

    def forward(self, x):
        return super().forward(x.sub_(0.5).mul_(2))


USERS_OWN_PASS = {instruments.preserve, instruments.opened, anatomy.unfused}


@pytest.mark.parametrize(
    "call", [c for c in NET if c not in USERS_OWN_PASS], ids=name_of
)
def test_data_are_as_found_after_a_model_that_writes_to_them(call):
    """Without this, a second pass has other inputs, and a number would be silent."""
    before = X.clone()
    model = made(WritesToItsInputs)
    X.copy_(before)
    with suppress(TheodoliteError):
        NET[call](model, "batch")
    now = X.clone()
    X.copy_(before)
    assert torch.equal(now, before)


@pytest.mark.parametrize(
    "measure",
    [
        lambda given: survey.survey(**given, progress=False, measures=["checks"]),
        lambda given: anatomy.summary(**given),
        lambda given: instruments.trace(**given, norm_mode="eval", max_matvecs=9),
    ],
    ids=["survey", "summary", "trace"],
)
def test_losses_of_model_and_batch_leave_inputs_as_found(measure):
    before = X.clone()
    model = made(WritesToItsInputs)
    X.copy_(before)
    given = {"loss": lambda model, batch: LOSS(model(batch[0]), batch[1])}
    with suppress(TheodoliteError):
        measure({"model": model, "batches": [(X, Y)], **given})
    now = X.clone()
    X.copy_(before)
    assert torch.equal(now, before)


@pytest.mark.parametrize("call", [c for c in CALLS if c not in SLOW], ids=name_of)
def test_numbers_are_the_same_inside_of_inference_mode(call):
    build, run = CALLS[call]
    model = made(build)
    with torch.inference_mode():
        inside = numbers(run(model, "batch"))
        assert torch.is_inference_mode_enabled()
    assert inside == plain_numbers(call)


@pytest.mark.parametrize(
    "measure",
    [
        lambda *given: survey.survey(*given, loss=LOSS, measures=["signal"]),
        lambda *given: anatomy.summary(*given, loss=LOSS),
        lambda *given: instruments.trace(
            *given, loss=LOSS, norm_mode="eval", max_matvecs=9
        ),
    ],
    ids=["survey", "summary", "trace"],
)
def test_loaders_are_read_outside_of_inference_mode(measure):
    """Whose tensors have no gradient."""
    loader = DataLoader(list(zip(X, Y, strict=True)), batch_size=3)
    outside = numbers(measure(made(Net), loader))
    model = made(Net)
    with torch.inference_mode():
        assert numbers(measure(model, loader)) == outside


def test_weights_made_in_inference_mode_are_refused():
    with torch.inference_mode():
        model = Net()
    for call in NET:
        if call not in USERS_OWN_PASS - {instruments.preserve}:
            with suppress(TheodoliteError):
                NET[call](model, "eval")
    with pytest.raises(TheodoliteError, match="made under torch"):
        anatomy.summary(model, (X, Y), loss=LOSS)


@every_call
def test_a_time_limit_at_any_safe_point_leaves_nothing_behind(call):
    build, run = CALLS[call]
    model = made(build)
    before, seen = state(model), []
    with StopCheck(lambda: seen.append(1)):
        run(model, "batch")
    as_found(model, before)

    total, left = len(seen), [0]

    def stop():
        left[0] -= 1
        if left[0] < 0:
            raise TimeIsOver

    for place in {0, 2 * total // 3} if total else ():
        left[0] = place
        with pytest.raises(TimeIsOver), StopCheck(stop):
            run(model, "batch")
        as_found(model, before)


@every_call
def test_ctrl_c_at_any_moment_waits_until_all_is_restored(call):
    build, run = CALLS[call]
    model = made(build)
    before, entered = state(model), [0]

    def count(_):
        entered[0] += 1

    with Watching(count):
        run(model, "batch")
    as_found(model, before)

    def press(_):
        entered[0] -= 1
        if entered[0] == 0:
            signal.raise_signal(signal.SIGINT)

    total, moments = entered[0], 2
    rng = np.random.default_rng(len(name_of(call)))
    for moment in rng.integers(1, total, moments):
        entered[0] = int(moment)
        with suppress(KeyboardInterrupt), Watching(press):
            run(model, "batch")
        as_found(model, before)


@cache
def plain_numbers(call):
    """Return what a call finds when nothing of the process was changed."""
    build, run = CALLS[call]
    return numbers(run(made(build), "batch"))


def numbers(found):
    """Return what a call found as text, to compare digit by digit."""
    if isinstance(found, Tensor):
        return repr(found.tolist())
    if isinstance(found, surgery.Result):
        return repr({k: v.tolist() for k, v in found.model.state_dict().items()})
    rows = found.rows() if hasattr(found, "rows") else found
    plain = isinstance(rows, list | tuple) or hasattr(rows, "column")
    told = [row for row in rows if "quantity" in row] if plain else []
    return repr([(row["quantity"], row["value"]) for row in told])


def test_threads_that_measure_one_model_find_what_one_thread_finds():
    calls = [call for call in NET if call is not survey.survey]
    shared, other = made(Net), made(Net)
    before = state(shared), state(other)
    # Graphs that one thread keeps are spoilt by weights that another one writes to.
    written = [p._version for p in shared.parameters()]
    work = {
        "batch": (shared, "batch", calls[::2]),
        "eval": (shared, "eval", calls[::-2]),
        "other": (other, "batch", calls[1::4]),
    }
    found, problems = {}, []

    def measure(name):
        model, mode, chosen = work[name]
        for call in chosen:
            try:
                found[name, call] = numbers(NET[call](model, mode))
            except Exception as error:
                problems.append((name, name_of(call), repr(error)))

    threads = [threading.Thread(target=measure, args=(name,)) for name in work]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
    finally:
        sys.setswitchinterval(interval)
    assert problems == []
    assert [p._version for p in shared.parameters()] == written
    as_found(shared, before[0])
    as_found(other, before[1])
    for (name, call), numbers_found in found.items():
        model, mode, _ = work[name]
        alone = numbers(NET[call](model, mode))
        assert numbers_found == alone, (name, name_of(call))


def in_this_process(see):
    def task(cell):
        see()
        return Report(State.COMPUTED)

    list(InProcess().run(task, [{}]))


def predicting(see):
    study = SimpleNamespace(predict=lambda _: see() or Rows())
    folder = SimpleNamespace(read=lambda _: None, write=lambda *_: None)
    judging.predicted_rows(SimpleNamespace(study=study), None, folder)


def reading_images(see):
    with imagefolder._strictly():
        see()


def calling_ray(see):
    with connection._without_warnings():
        see()


@pytest.mark.parametrize(
    "change", [in_this_process, predicting, reading_images, calling_ray]
)
def test_others_wait_while_settings_of_the_process_are_changed(change):
    """Two threads would each restore what the other has set, for ever."""
    order, started = [], threading.Event()

    def measure():
        started.set()
        with Exclusive():
            order.append("measured")

    other = threading.Thread(target=measure)

    def see():
        other.start()
        started.wait()
        while not core_process._turn._waiting and not order:
            threading.Event().wait(1e-3)
        order.append("changed back")

    change(see)
    other.join()
    assert order == ["changed back", "measured"]


def test_threads_take_turns():
    """A thread that measures again and again keeps no other waiting."""
    order, holds = [], threading.Event()

    def measure():
        with Exclusive():
            holds.set()
            while not core_process._turn._waiting:
                threading.Event().wait(1e-3)
        with Exclusive():
            order.append("again")

    other = threading.Thread(target=measure)
    other.start()
    holds.wait()
    with Exclusive():
        order.append("waiting")
    other.join()
    assert order == ["waiting", "again"]


def test_a_lock_given_back_elsewhere_leaves_ctrl_c_alone():
    """As where another thread collects a generator that holds it."""
    before, held = signal.getsignal(signal.SIGINT), Exclusive()
    held.__enter__()
    other = threading.Thread(target=held.__exit__, args=(None, None, None))
    other.start()
    other.join()
    with pytest.raises(KeyboardInterrupt), Exclusive():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("call", [c for c in CALLS if c not in SLOW], ids=name_of)
def test_numbers_are_the_same_under_another_default_device(call):
    """As after ``torch.set_default_device("cuda")``; "meta" holds no numbers at all."""
    build, run = CALLS[call]
    model = made(build)
    torch.set_default_device("meta")
    try:
        under = numbers(run(model, "batch"))
        assert torch.get_default_device() == torch.device("meta")
    finally:
        torch.set_default_device(None)
    assert under == plain_numbers(call)


FACTORIES = {
    "arange", "as_tensor", "empty", "eye", "full", "linspace", "ones", "rand",
    "randint", "randn", "randperm", "tensor", "zeros",
}  # fmt: skip


def test_new_tensors_name_their_device():
    """So that a default device of the user, as of a script on a GPU, changes none."""
    library = Path(theodolite.__file__).parent
    files = {f for f in library.rglob("*.py") if "networks" not in f.parts}
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(ast.Name("torch"), called)):
                    given = any(keyword.arg is None for keyword in node.keywords)
                    named = given or "device" in ast.unparse(node)
                    assert named or called not in FACTORIES, f"{file}:{node.lineno}"
