"""How long the path to a number is: files entered, calls deep, files in a circle.

``python -m bench.path_length`` prints the table of ARCHITECTURE.md. ``--write`` puts it
there; ``--why`` adds the files, the deepest stack and the calls of each pair.

What is counted, by ``sys.settrace`` in the calling thread of a new process:

- A *frame of ours* is a call of a function, method, lambda or generator of
  ``theodolite`` or ``theodolite_papers``, also one made by torch or by Python: methods
  of torch modes and hooks, decorators, properties and context managers count.
  Comprehensions do not, since from Python 3.12 on they are no calls.
- *files*: files with a frame of ours.
- *deep*: most frames of ours on the stack at once.
- *pairs*: pairs of files that call each other. A file calls another if a frame of ours
  in the other is entered and the nearest frame of ours below is in the file.

Code that runs while a module is imported is left out, so that it does not matter what
was imported before. No progress is shown, as where standard error is no terminal.
"""

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"
_INLINE = {"<listcomp>", "<setcomp>", "<dictcomp>"}


@dataclass
class PathLength:
    """What was entered between start and stop of a call.

    Attributes:
        source: Folder of our code.
        edges: How often one code object calls another; the first may be None.
        stack: The deepest stack, outermost first.
    """

    source: Path = SOURCE
    edges: Counter[tuple[CodeType | None, CodeType]] = field(default_factory=Counter)
    stack: list[str] = field(default_factory=list)
    _files: dict[str, str | None] = field(default_factory=dict)
    _open: list[FrameType] = field(default_factory=list)
    _importing: int = 0

    def tracer(self) -> Callable[[FrameType, str, Any], Any]:
        """Return a trace function; it is called for all Python code, so is quick."""
        known = self._files.get

        def enter(frame: FrameType, event: str, _: Any) -> Any:
            code = frame.f_code
            ours = known(code.co_filename, "")  # hashing code would take long
            if ours == "":
                ours = self._file(code)
            return None if ours is None else self._enter(frame)

        return enter

    def _enter(self, frame: FrameType) -> Any:
        """See a frame of ours, which is followed until it returns."""
        code = frame.f_code
        if code.co_name in _INLINE:
            return None
        frame.f_trace_lines = False
        self._importing += code.co_name == "<module>"
        if not self._importing:
            self.edges[self._open[-1].f_code if self._open else None, code] += 1
        self._open.append(frame)
        if len(self._open) > len(self.stack) and not self._importing:
            codes = [one.f_code for one in self._open]
            self.stack = [f"{self._file(one)}: {one.co_qualname}" for one in codes]
        return self._leave

    def _leave(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "return" and self._open and self._open[-1] is frame:
            self._open.pop()
            self._importing -= frame.f_code.co_name == "<module>"
        return self._leave

    def _file(self, code: CodeType) -> str | None:
        """Return the file of code of ours, None for other code."""
        name = code.co_filename
        if name not in self._files:
            ours = Path(name).is_relative_to(self.source)
            path = Path(name).relative_to(self.source).as_posix() if ours else None
            self._files[name] = path
        return self._files[name]

    @property
    def entered(self) -> set[str]:
        """Files with a frame of ours."""
        return {self._file(called) or "" for _, called in self.edges}

    @property
    def calls(self) -> Counter[tuple[str, str, str]]:
        """How often one file calls another, by both and the names of functions."""
        calls: Counter[tuple[str, str, str]] = Counter()
        for (caller, called), number in self.edges.items():
            first, second = caller and self._file(caller), self._file(called)
            if caller and first and second and first != second:
                names = f"{caller.co_qualname} → {called.co_qualname}"
                calls[first, second, names] += number
        return calls

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Files that call each other."""
        edges = {(caller, called) for caller, called, _ in self.calls}
        return sorted((a, b) for a, b in edges if a < b and (b, a) in edges)

    @property
    def row(self) -> tuple[int, int, int]:
        """Files, depth and pairs."""
        return len(self.entered), len(self.stack), len(self.pairs)

    def explain(self) -> str:
        """Return the files, the deepest stack and the calls of each pair."""
        lines = ["files", *sorted(self.entered), "", "deepest stack", *self.stack]
        for pair in self.pairs:
            lines += ["", " ↔ ".join(pair)]
            lines += [
                f"{count:6} {caller}: {names}"
                for (caller, called, names), count in self.calls.items()
                if {caller, called} == set(pair)
            ]
        return "\n".join(lines)


def count(call: Callable[[], object], source: Path = SOURCE) -> PathLength:
    """Return the length of the path that a call takes through files of a folder."""
    length = PathLength(source)
    sys.settrace(length.tracer())
    try:
        call()
    finally:
        sys.settrace(None)
    return length


def _instruments() -> dict[str, Callable[[], object]]:
    """Return calls on a network in float32 that is too large for a dense Hessian."""
    import torch
    from torch import nn

    from theodolite import instruments

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = nn.Linear(4, 60), nn.Tanh(), nn.Linear(60, 60), nn.Tanh(), nn.Linear(60, 3)
    model, loss = nn.Sequential(*layers), nn.CrossEntropyLoss()
    batch = torch.randn(6, 4), torch.arange(6) % 3
    return {
        "extreme_eigenvalues(model, batches, loss=…)": (
            lambda: instruments.extreme_eigenvalues(model, [batch], loss=loss)
        ),
        "trace(model, batches, loss=…)": (
            lambda: instruments.trace(model, [batch], loss=loss)
        ),
    }


def _run_study() -> None:
    from theodolite.cli import app

    with tempfile.TemporaryDirectory() as folder:
        words = "run hessian_at_zero --scale smoke --jobs 0 --trust --out"
        app([*words.split(), folder], standalone_mode=False)


def calls() -> dict[str, Callable[[], object]]:
    """Return the calls of the table."""
    study = {"theodolite run hessian_at_zero --scale smoke --jobs 0": _run_study}
    return _instruments() | study


def table(lengths: dict[str, PathLength]) -> str:
    """Return the table of ARCHITECTURE.md."""
    lines = ["| call | files | deep | pairs |", "|---|---|---|---|"]
    for name, length in lengths.items():
        lines.append(f"| `{name}` | {' | '.join(map(str, length.row))} |")
    return "\n".join(lines)


def main() -> None:
    """Count all calls and print the table."""
    from contextlib import redirect_stdout

    from theodolite.instruments import progress

    with redirect_stdout(sys.stderr), progress(False):
        lengths = {name: count(call) for name, call in calls().items()}
    print(table(lengths))
    if "--write" in sys.argv:
        page = SOURCE.parent / "ARCHITECTURE.md"
        rows = re.compile(r"^\| call \|.*?(?=\n\n)", re.DOTALL | re.MULTILINE)
        page.write_text(rows.sub(lambda _: table(lengths), page.read_text()))
    if "--why" in sys.argv:
        for name, length in lengths.items():
            print(f"\n## {name}\n{length.explain()}")


if __name__ == "__main__":
    main()
