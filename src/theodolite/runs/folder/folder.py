"""A run folder: its spec, every launch, one file per finished cell.

::

    <root>/runs/<paper>/<study>/<digest>/
      run.json      the spec and where it was first run, written before anything
      launches/     one record per launch
      cells/        one file per finished cell
      locks/        cells in flight
      checks/       the digest of every file except cells, which hold their own
"""

import errno
import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, Self

from theodolite.core import ConfigError, Cost, Row, Rows, RunError, to_strict_json

from .atomic import refusing, sweep, try_lock, wait_lock, write_atomic
from .checked import (
    CHECKS,
    Damage,
    DamagedError,
    checked_text,
    clear_place,
    damage_of,
    read_checked,
    read_regular,
    set_aside,
    write_checked,
    written_names,
)
from .launch import Launch, now, provenance
from .spec import (
    Cell,
    RunSpec,
    SavedCell,
    canonical,
    cell_key,
    cell_name,
    cell_order,
    decode,
    encode,
    labels,
    unique,
)

_INFO = "run.json"
_OWN = {_INFO, "launches", "cells", "locks", CHECKS, "damaged"}
_NO_FILE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO}
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


class RunFolder:
    """Everything known about one run; safe for several processes at once.

    Make one with :meth:`create` or :meth:`open`.

    Attributes:
        path: The folder.
        spec: The spec of the run.
        info: ``run.json``: spec, version, commit, packages, platform, time.
    """

    def __init__(self, path: Path, spec: RunSpec, info: dict[str, Any]) -> None:
        self.path = path
        self.spec = spec
        self.info = info

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    @classmethod
    def create(cls, root: Path | str, spec: RunSpec) -> Self:
        """Make the folder of a spec under ``root``, or return the one there.

        A damaged ``run.json`` is renamed and written again: the folder's name is the
        digest of the spec, so that the cells in it are those of the spec.

        Raises:
            RunError: The folder cannot be written, or holds another run.
        """
        path = Path(root).absolute() / "runs" / spec.paper / spec.study / spec.digest
        if damage_of(path, _INFO) is not None:  # may be read-only, and intact
            with refusing("create", path):
                for part in ("cells", "locks", "launches"):
                    (path / part).mkdir(parents=True, exist_ok=True)
                with wait_lock(path / "locks" / "create"):
                    _settle_info(path, spec)
        folder = cls.open(path)
        _check_same(folder.path, folder.spec, spec)
        folder.clean()
        return folder

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open a run folder that exists.

        Raises:
            RunError: There is none, or its ``run.json`` cannot be read.
        """
        path = Path(path).absolute()
        text = checked_text(path, _INFO)
        if text is None and any((path / "cells").glob("*.jsonl")):
            raise DamagedError(Damage(path, _INFO, "is missing"))
        if text is None:
            raise RunError(
                f"{path} is not a run folder (it has no {_INFO}): pass one that a run "
                "has made"
            )
        try:
            info = json.loads(text)
            return cls(path, RunSpec.from_dict(info), info)
        except _UNREADABLE as error:
            problem = f"does not say what was run ({type(error).__name__}: {error})"
            raise DamagedError(Damage(path, _INFO, problem)) from error

    @classmethod
    def restored(cls, path: Path | str) -> Self:
        """Open a run folder, and write a damaged ``run.json`` again.

        The spec is read from the records of its launches.

        Raises:
            RunError: It is no run folder, or no record says what was run.
        """
        path = Path(path).absolute()
        try:
            return cls.open(path)
        except DamagedError:
            for spec in _launched(path):
                if spec.digest == path.name:
                    return cls.create(path.parents[3], spec)
            raise

    def done(self, cell: Cell) -> bool:
        """Return whether a cell is finished and its file intact."""
        return self._load(cell) is not None

    def pending(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return the cells that are not finished, in order, each once."""
        return [cell for cell in unique(cells) if not self.done(cell)]

    def save(self, cell: Cell, rows: Iterable[Row], cost: Cost) -> None:
        """Save a finished cell atomically."""
        content = encode(cell, rows, cost)
        with refusing("write to", self.path):
            clear_place(self._file(cell))
            write_atomic(self._file(cell), content)

    def rows(self, cells: Iterable[Cell] | None = None) -> Rows:
        """Return the rows of finished cells, each with its cell's labels.

        Args:
            cells: Which cells, and in which order; all, sorted by label, by default.
        """
        return Rows.joined([saved.rows for saved in self._saved(cells)])

    def collected(self, cells: Iterable[Cell]) -> tuple[Rows, Cost]:
        """Return rows and cost of finished cells, each file read once."""
        finished = list(self._saved(cells))
        rows = Rows.joined(saved.rows for saved in finished)
        return rows, sum((saved.cost for saved in finished), Cost())

    def cost(self, cells: Iterable[Cell] | None = None) -> Cost:
        """Return the total cost of the finished cells."""
        return sum((saved.cost for saved in self._saved(cells)), Cost())

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a study's own file, such as ``figures/1.svg``, and its digest."""
        path = self._own_name(name)
        data = content.encode() if isinstance(content, str) else content
        with refusing("write to", self.path):
            return write_checked(
                self.path, path.relative_to(self.path).as_posix(), data
            )

    def read(self, name: str) -> str | None:
        """Return the text of a file in the folder, None where there is none.

        Raises:
            DamagedError: It is not what was written.
        """
        return checked_text(self.path, name)

    def was_written(self, name: str) -> bool:
        """Return whether a file was ever written."""
        return name in written_names(self.path)

    def set_aside(self, name: str) -> None:
        """Move a damaged file to ``damaged/``, and forget that it was written."""
        with refusing("write to", self.path):
            set_aside(self.path, name)

    def damages(self) -> list[Damage]:
        """Check every file of the run, and return all damage."""
        damages = [damage_of(self.path, name) for name in written_names(self.path)]
        return [*filter(None, damages), *self._torn_cells()]

    def launch(self, *, jobs: int, scale: str | None = None) -> Launch:
        """Return a launch record to enter while work goes on."""
        spec = {**self.spec.to_dict(), "scale": scale or self.spec.scale}
        return Launch(self.path, jobs=jobs, spec=spec)

    def launches(self) -> list[dict[str, Any]]:
        """Return the intact launch records, oldest first."""
        return list(_records(self.path))

    def lock(self, cell: Cell) -> AbstractContextManager[bool]:
        """Take a cell's lock if it is free; the context says whether it was."""
        return try_lock(self.path / "locks" / cell_name(cell))

    def clean(self) -> None:
        """Remove temporary files and free locks of killed processes."""
        sweep(self.path)
        for path in (self.path / "locks").glob("*"):
            try:
                with try_lock(path):
                    pass
            except OSError:  # a read-only folder: nothing to clean, nothing harmed
                return

    def _file(self, cell: Cell) -> Path:
        return self.path / "cells" / f"{cell_name(cell)}.jsonl"

    def _load(self, cell: Cell) -> SavedCell | None:
        saved = self._load_file(self._file(cell))
        same = saved is not None and cell_key(saved.cell) == cell_key(cell)
        return saved if same else None

    def _load_file(self, path: Path) -> SavedCell | None:
        with refusing("read", self.path):
            try:
                return decode(read_regular(path))
            except OSError as error:
                if error.errno in _NO_FILE:
                    return None
                raise

    def _saved(self, cells: Iterable[Cell] | None) -> Iterator[SavedCell]:
        if cells is None:
            files = (self.path / "cells").glob("*.jsonl")
            loaded = [saved for file in files if (saved := self._load_file(file))]
            yield from sorted(loaded, key=lambda saved: cell_order(saved.cell))
        else:
            for cell in unique(cells):
                if (saved := self._load(labels(cell))) is not None:
                    yield saved

    def _torn_cells(self) -> Iterator[Damage]:
        for path in sorted((self.path / "cells").glob("*.jsonl")):
            saved = self._load_file(path)
            if saved is None or cell_name(saved.cell) != path.stem:
                yield Damage(self.path, f"cells/{path.name}", "is torn or altered")

    def _own_name(self, name: str) -> Path:
        parts = PurePosixPath(name).parts
        if not parts or parts[0] in {"/", *_OWN} or ".." in parts:
            raise ConfigError(
                f"{name!r} is not a name for a study's own file: use a relative one "
                "such as figures/1.svg"
            )
        return self.path.joinpath(*parts)


def _describe(spec: RunSpec) -> bytes:
    info = {**spec.record, "created": now(), **provenance()}
    return (
        json.dumps(to_strict_json(info), indent=2, ensure_ascii=False) + "\n"
    ).encode()


def _settle_info(path: Path, spec: RunSpec) -> None:
    """Write ``run.json`` where there is none, or one that cannot be trusted."""
    if damage_of(path, _INFO) is None:
        return
    if (path / _INFO).exists():
        with suppress(OSError, *_UNREADABLE):
            stated = json.loads(read_regular(path / _INFO))
            _check_same(path, RunSpec.from_dict(stated), spec)
        set_aside(path, _INFO)
    write_checked(path, _INFO, _describe(spec))


def _records(path: Path) -> Iterator[dict[str, Any]]:
    for file in sorted((path / "launches").glob("*.json")):
        with suppress(DamagedError, *_UNREADABLE):
            record = json.loads(read_checked(path, f"launches/{file.name}") or b"")
            if isinstance(record, dict):
                yield record


def _launched(path: Path) -> Iterator[RunSpec]:
    """Yield the specs of a folder's launches, the last first."""
    for record in reversed(list(_records(path))):
        with suppress(*_UNREADABLE):
            yield RunSpec.from_dict(record["spec"])


def _check_same(path: Path, stated: RunSpec, spec: RunSpec) -> None:
    asked, there = spec.to_dict(), stated.to_dict()
    for name in (name for name in asked if name != "scale"):
        if canonical(asked[name]) != canonical(there[name]):
            raise RunError(
                f"{path} holds a run with {name} {there[name]!r}, not "
                f"{asked[name]!r}: choose another folder, or move this one away"
            )
