r"""Polynomials in the scale of all branches, pushed and pulled through a tape.

Multiply every branch by $t$: with gates frozen, the output is the polynomial
$y(t) = \sum_r c_r t^r$, and $c_r$ is the sum over all paths that take $r$ branches.
Coefficients are carried from call to call, so nothing is lost to interpolation; a path
that a bias begins counts the branches that it passes afterwards.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from .tape import Step, Summed, Tape, Vectorised

# By call, the positions of its arguments that make a path longer by one.
Marks = Mapping[int, tuple[int, ...]]


def coefficients(tape: Tape, marks: Marks, *, biases: bool = True) -> Tensor:
    """Return the coefficients of the output, the degree on the first axis.

    Without ``biases``, paths that start at constants are left out.
    """
    stacks = {number: value[None] for number, value in tape.sources.items()}
    last = tape.last_uses()
    for place, step in enumerate(tape.steps):
        pushed = _pushed(step, [stacks[number] for number in step.inputs], marks)
        stacks[step.output] = _with_constant(step, pushed) if biases else pushed
        for number in set(step.inputs):
            if last[number] == place:
                del stacks[number]
    return stacks[tape.output]


def values_at(tape: Tape, weigh: Callable[[Step, int], float]) -> Tensor:
    """Return the output of the frozen network with operands of its calls rescaled.

    ``weigh(step, place)`` is the factor of the operand at a place of a step.
    """
    stacks = {number: value[None] for number, value in tape.sources.items()}
    last = tape.last_uses()
    for place, step in enumerate(tape.steps):
        factors = [weigh(step, k) for k in range(len(step.inputs))]
        operands = [
            stacks[number] if factor == 1 else stacks[number] * factor
            for number, factor in zip(step.inputs, factors, strict=True)
        ]
        stacks[step.output] = push_step(step, operands)
        for number in set(step.inputs):
            if last[number] == place:
                del stacks[number]
    return stacks[tape.output][0]


def adjoints(
    tape: Tape, marks: Marks, cotangent: Tensor, wanted: tuple[int, ...]
) -> dict[int, Tensor]:
    """Return the gradient's coefficients by each tensor number in ``wanted``.

    ``cotangent`` is the gradient of the loss by the output, in the true pass.
    """
    stacks: dict[int, Tensor] = {tape.output: cotangent[None]}
    gradients: dict[int, Tensor] = {}
    for step in reversed(tape.steps):
        adjoint = stacks.pop(step.output, None)
        if adjoint is None:
            continue
        if step.output in wanted:
            gradients[step.output] = adjoint
        parts = zip(
            step.inputs, step.map.pull(adjoint), _shifts(step, marks), strict=True
        )
        for number, part, shift in parts:
            _deposit(stacks, number, part, shift)
    gradients.update(
        {n: stacks[n] for n in tape.sources if n in stacks and n in wanted}
    )
    return gradients


def path_counts(tape: Tape, marks: Marks) -> list[int]:
    """Return how many paths lead from the sources to the output, by branches taken."""
    counts: dict[int, list[int]] = {number: [1] for number in tape.sources}
    for step in tape.steps:
        total: list[int] = []
        for number, shift in zip(step.inputs, _shifts(step, marks), strict=True):
            shifted = [0] * shift + counts[number]
            total += [0] * (len(shifted) - len(total))
            total[: len(shifted)] = map(sum, zip(total, shifted, strict=False))
        counts[step.output] = total
    return counts[tape.output]


def degrees(tape: Tape, marks: Marks) -> dict[int, int]:
    """Return the highest degree of every tensor's polynomial."""
    degree = dict.fromkeys(tape.sources, 0)
    for step in tape.steps:
        shifted = zip(step.inputs, _shifts(step, marks), strict=True)
        degree[step.output] = max(degree[number] + shift for number, shift in shifted)
    return degree


def _pushed(step: Step, operands: list[Tensor], marks: Marks) -> Tensor:
    shifts = _shifts(step, marks)
    if isinstance(step.map, Summed):
        return step.map.push_shifted(operands, shifts, step.map.weights)
    longest = max(len(s) + k for s, k in zip(operands, shifts, strict=True))
    if len(operands) == 1 and shifts[0]:  # the new degree needs no computation
        pushed = step.map.push(operands)
        return torch.cat([torch.zeros_like(pushed[:1]), pushed])
    raised = [_raised(s, k) for s, k in zip(operands, shifts, strict=True)]
    return step.map.push([_padded(stack, longest) for stack in raised])


def push_step(step: Step, operands: list[Tensor]) -> Tensor:
    """Return the output of a step for plain tensors, with a degree axis of size 1."""
    return _with_constant(step, _pushed(step, operands, {}))


def _shifts(step: Step, marks: Marks) -> tuple[int, ...]:
    chosen = marks.get(step.call, ())
    return tuple(int(place in chosen) for place in step.positions)


def _with_constant(step: Step, stack: Tensor) -> Tensor:
    """Add the constant of a step to the paths that take no branch."""
    if step.constant is None:
        return stack
    if len(stack) == 1:
        return stack + step.constant
    if isinstance(step.map, Vectorised):  # may be a view of its operand
        stack = stack.clone()
    stack[0] += step.constant
    return stack


def _padded(stack: Tensor, count: int) -> Tensor:
    if len(stack) == count:
        return stack
    blank = stack.new_zeros((count - len(stack), *stack.shape[1:]))
    return torch.cat([stack, blank])


def _raised(stack: Tensor, shift: int) -> Tensor:
    return torch.cat([torch.zeros_like(stack[:1]), stack]) if shift else stack


def _deposit(stacks: dict[int, Tensor], number: int, part: Tensor, shift: int) -> None:
    """Add an adjoint, shifted by some degrees, to those of a tensor."""
    part = _raised(part, shift)
    if number not in stacks:
        stacks[number] = part
        return
    held = stacks[number]
    count = max(len(held), len(part))
    total = _padded(held, count).clone() if len(held) == count else _padded(held, count)
    total[: len(part)] += part
    stacks[number] = total
