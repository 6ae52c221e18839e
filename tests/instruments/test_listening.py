"""Listeners see the calls of their thread, in a stated order, and leave no trace."""

from threading import Thread

import pytest
import torch
from torch import nn
from torch.nn.modules import module as hooks

from theodolite.instruments import Listener

X = torch.ones(2, 3)


class Noting(Listener):
    """Notes what it sees, under its name."""

    def __init__(self, name, notes):
        self.name, self.notes = name, notes

    def on_function(self, function, args, kwargs):
        self.notes.append((self.name, function.__name__))
        return function(*args, **kwargs)

    def on_operator(self, operator, args, kwargs):
        self.notes.append((self.name, str(operator)))
        return operator(*args, **kwargs)

    def on_enter(self, module, args):
        assert self.running[-1] is module
        self.notes.append((self.name, "enter", type(module).__name__, len(args)))

    def on_leave(self, module, args, kwargs, output):
        assert self.running[-1] is module
        kind = type(module).__name__
        self.notes.append((self.name, "leave", kind, sorted(kwargs), output is None))


class Twice(Listener):
    """Replaces exp by twice its argument."""

    def on_function(self, function, args, kwargs):
        return args[0] + args[0] if function is torch.exp else function(*args, **kwargs)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass


class Fails(nn.Module):
    def forward(self, x, error=ValueError):
        raise error


class Caught(nn.Module):
    """Catches what its submodule raises, and goes on."""

    def __init__(self):
        super().__init__()
        self.fails, self.ends = Fails(), nn.ReLU()

    def forward(self, x, error):
        with pytest.raises(error):
            self.fails(x, error=error)
        return self.ends(x)


def installed():
    """Return all that torch keeps of hooks on modules in general."""
    kept = [value for name, value in vars(hooks).items() if "_global_forward" in name]
    return [len(value) for value in kept], torch.autograd.Function.__dict__["apply"]


def test_the_last_to_enter_sees_calls_first_and_the_others_what_it_calls():
    notes = []
    with Noting("outer", notes), Twice(), Noting("inner", notes):
        result = torch.exp(X)
    assert torch.equal(result, 2 * X)
    assert notes == [
        ("inner", "exp"),
        ("outer", "add"),
        ("inner", "aten.add.Tensor"),
        ("outer", "aten.add.Tensor"),
    ]


def test_modules_are_entered_in_order_and_left_in_reverse():
    notes = []
    with Noting("outer", notes), Noting("inner", notes):
        nn.Identity()(input=X)
    assert [note[:2] for note in notes] == [
        ("outer", "enter"),
        ("inner", "enter"),
        ("inner", "leave"),
        ("outer", "leave"),
    ]
    assert notes[-1] == ("outer", "leave", "Identity", ["input"], False)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_module_that_failed_is_left(error):
    notes = []
    with Noting("", notes) as listener:
        Caught()(X, error)
        assert listener.running == []
    kinds = [note[1:3] for note in notes if note[1] in ("enter", "leave")]
    failed = [("enter", "Caught"), ("enter", "Fails"), ("leave", "Fails")]
    ended = [("enter", "ReLU"), ("leave", "ReLU"), ("leave", "Caught")]
    if error is KeyboardInterrupt:  # torch calls no hook, so it is seen afterwards
        failed, ended = failed[:2], [*ended[:2], ("leave", "Fails"), ended[2]]
    assert kinds == failed + ended
    assert ("", "leave", "Fails", [], True) in notes


class Applied(Listener):
    def __init__(self):
        self.seen = []

    def on_autograd_function(self, apply, args, kwargs):
        self.seen.append(args)
        return 10 * apply(*args, **kwargs)


def test_applied_autograd_functions_are_seen_in_this_thread_alone():
    with Applied() as outer, Applied() as inner:
        assert torch.equal(Square.apply(2 * X), 400 * X)
        other = []
        thread = Thread(target=lambda: other.append(Square.apply(2 * X)))
        thread.start()
        thread.join()
    assert torch.equal(other[0], 4 * X)
    assert len(outer.seen) == len(inner.seen) == 1


def test_other_threads_are_not_listened_to():
    notes = []
    with Noting("", notes):
        thread = Thread(target=lambda: nn.Linear(3, 3)(X))
        thread.start()
        thread.join()
    assert notes == []


def test_a_module_that_ran_before_the_listener_is_not_left():
    listener = Noting("late", [])

    class Enters(nn.Module):
        def forward(self, x):
            listener.__enter__()
            return x

    with Noting("early", []):
        Enters()(X)
        listener.__exit__(None, None, None)
    assert not listener.notes


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_torch_is_left_as_it_was(error):
    before = installed()

    class All(Noting, Applied):
        pass

    with All("", []), All("", []):
        assert installed() != before
    with pytest.raises(error), All("", []), All("", []):
        Fails()(X, error)
    assert installed() == before
    assert not torch.overrides._get_current_function_mode_stack()
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()
