"""Change one token of the code at a time, and count the changes that tests notice.

Cosmic Ray makes the changes, in the library and in the papers. This file draws a sample
of them with a seed and runs, for each, the tests of the package or paper that it lies
in and the examples of its own file: first the files of tests that name the changed
function, its module or those that import it, then all others. Each change is made in a
copy of the repository. A test that also fails without a change does not count. What
survives is printed, to be read: no test can notice a change that changes no behaviour.

Some tokens are left out, since it is known that they change no behaviour: what only
type checkers read, how a class prints itself (``repr=``), whether arguments may come by
position (``kw_only=``, and the star of a signature), whether lists of one length are
checked (``strict=``), and changes after which the file is no longer Python.

Run with ``make mutants``.
"""

import argparse
import difflib
import functools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[1]
LIBRARY, PAPERS = Path("src/theodolite"), Path("src/theodolite_papers")
# `int | None` is a type; the rest replace more than a token.
LEFT_OUT = re.compile(r"BitOr|RemoveDecorator|ExceptionReplacer|Variable|NoOp|ZeroIter")
IDLE = re.compile(
    r"(kw_only|repr|strict)=§|§(TYPE_CHECKING|\*,)"
)  # § is where the token is
NOT_COPIED = shutil.ignore_patterns(".git", ".venv*", "__pycache__", "out", "build")
OF_ALL = ("tests/test_defaults.py",)  # tests that are about every package
FIRST = 8  # files of tests that are tried before all others
# Seconds for one test, which then fails, so a change that hangs is noticed; and for all
# tests of a change, should pytest itself hang.
TEST_SECONDS, SECONDS = 600, 7200


@dataclass(frozen=True)
class Mutant:
    """A file with one token changed."""

    file: Path
    line: int
    function: str
    changed: str
    difference: str


def mutants(count: int, seed: int) -> Iterator[Mutant]:
    """Draw files by their size, then a token, then what it becomes."""
    draw = random.Random(seed)
    code = [*(ROOT / LIBRARY).rglob("*.py"), *(ROOT / PAPERS).rglob("*.py")]
    files = sorted(file.relative_to(ROOT) for file in code)
    sizes = [(ROOT / file).stat().st_size for file in files]
    while count:
        file = draw.choices(files, sizes)[0]
        code = (ROOT / file).read_text()
        if not (places := _places(code)):
            continue
        (line, _), changes = draw.choice(sorted(places.items()))
        name, occurrence, function = draw.choice(changes)
        changed = mutate_code(code, get_operator(name)(), occurrence)
        if changed is None or changed == code or not _compiles(changed):
            continue
        lines = difflib.unified_diff(code.split("\n"), changed.split("\n"), n=0)
        shown = [each for each in lines if re.match(r"[-+][^-+]", each)]
        yield Mutant(file, line, function, changed, "\n    ".join(shown))
        count -= 1


def _compiles(code: str) -> bool:
    try:
        compile(code, "", "exec")
    except SyntaxError:
        return False
    return True


def _places(code: str) -> dict[tuple[int, int], list[tuple[str, int, str]]]:
    """Return what each token may become: an operator, its occurrence, the function."""
    nodes, lines = list(ast_nodes(get_ast(code))), code.split("\n")
    places: dict[tuple[int, int], list[tuple[str, int, str]]] = {}
    for name in sorted(operator_names()):
        if LEFT_OUT.search(name) or get_operator(name).arguments():
            continue
        operator = get_operator(name)()
        at = [(n, start) for n in nodes for start, _ in operator.mutation_positions(n)]
        for occurrence, (node, (line, column)) in enumerate(at):
            text = lines[line - 1]
            if not IDLE.search(f"{text[:column]}§{text[column:]}"):
                function = ASTQuery(node).get_definition_name() or ""
                change = (name, occurrence, function)
                places.setdefault((line, column), []).append(change)
    return places


def tests_of(mutant: Mutant) -> list[str]:
    """Return the tests of a file's package or paper, those most about it first."""
    of_paper = mutant.file.is_relative_to(PAPERS)
    source, folder = (PAPERS, "tests/papers") if of_paper else (LIBRARY, "tests")
    inside, stem = mutant.file.relative_to(source).parts, mutant.file.stem
    package = ROOT / source / (inside[0] if len(inside) > 1 else "")
    files = sorted((ROOT / folder / inside[0]).rglob("test_*.py"))
    if not files:  # a file beside the packages, or a package tested beside the folders
        files = sorted(ROOT.glob(f"tests/test_{inside[0]}*.py"))
    files = files or sorted(ROOT.glob("tests/test_*.py"))
    if of_paper:  # what holds for the studies of all papers
        files += sorted(ROOT.glob("tests/studies/test_*.py"))
    users = [p.stem for p in package.rglob("*.py") if f".{stem} imp" in p.read_text()]
    names = [f"{mutant.function or stem}|{stem}", "|".join(users) or stem]

    def about(file: Path) -> list[int]:
        text, own = file.read_text(), {stem, *inside[1:-1]}
        counts = (len(re.findall(rf"\b({name})\b", text)) for name in names)
        return [file.stem.removeprefix("test_") not in own, *(-n for n in counts)]

    files.sort(key=about)
    return [str(mutant.file), *OF_ALL, *(str(file.relative_to(ROOT)) for file in files)]


def survives(mutant: Mutant, copy: Path) -> bool:
    """Return whether all tests pass with the change, made in a copy of the project."""
    file, tests = copy / mutant.file, tests_of(mutant)
    original = file.read_text()
    for some in (tests[:FIRST], tests[FIRST:]):
        while some:
            file.write_text(mutant.changed)
            try:
                failed = first_failure(some, copy)
            finally:
                file.write_text(original)
            if failed is None:
                break
            if failed not in some or sound(failed, copy):
                return False
            some.remove(failed)
    return True


def first_failure(files: Sequence[str], copy: Path) -> str | None:
    """Return the file of the first test that fails, "" where no file is named."""
    paths = os.pathsep.join([str(copy / "src"), str(copy)])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x"]  # a test needs the cache
    try:
        done = subprocess.run(
            [*command, "--tb=no", f"--timeout={TEST_SECONDS}", *files],
            cwd=copy, env=environment, timeout=SECONDS, capture_output=True, text=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return ""
    if done.returncode in (0, 5):  # 5: there is no test
        return None
    named = re.search(r"^(?:FAILED|ERROR) ([^\s:]+)", done.stdout, re.MULTILINE)
    return named[1] if named else ""


@functools.cache
def sound(file: str, copy: Path) -> bool:
    """Return whether a file's tests pass without a change."""
    passes = first_failure([file], copy) is None
    if not passes:
        print(f"left out {file}, which fails without a change", flush=True)
    return passes


def main() -> None:
    """Draw, try and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="what a file's path begins with")
    asked = parser.parse_args()
    drawn = list(mutants(asked.count, asked.seed))
    drawn = [one for one in drawn if str(one.file).startswith(asked.only)]
    copies: Queue[Path] = Queue()
    with tempfile.TemporaryDirectory() as folder:
        for worker in range(os.cpu_count() or 1):
            copies.put(Path(folder, str(worker)))
            shutil.copytree(ROOT, Path(folder, str(worker)), ignore=NOT_COPIED)

        def attempt(mutant: Mutant) -> bool:
            copy = copies.get()
            try:
                alive = survives(mutant, copy)
            finally:
                copies.put(copy)
            told = f"{mutant.file}:{mutant.line} {mutant.function}"
            change = f"\n    {mutant.difference}" if alive else ""
            print(f"{'survived' if alive else 'noticed'} {told}{change}", flush=True)
            return alive

        with ThreadPoolExecutor(copies.qsize()) as pool:
            alive = sum(pool.map(attempt, drawn))
    noticed = len(drawn) - alive
    print(f"{noticed} of {len(drawn)} changes were noticed (seed {asked.seed})")


if __name__ == "__main__":
    main()
