"""Check a study before the run, and the work that is then sent to workers."""

import os
import shlex
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from theodolite import data
from theodolite.core import (
    ConfigError,
    DataError,
    Exclusive,
    Rows,
    RunError,
    StudyError,
    unknown_name,
)
from theodolite.runs import RunFolder, RunSpec

from .known_studies import Entry, study_of
from .study import Paper, Study
from .study_file import StudyFile, studies_in_file


@dataclass(frozen=True)
class StudyWork:
    """Measure cells of one study, in any process.

    Attributes:
        paper: Paper of the study; a worker imports its package by name.
        name: Name of the study in its paper.
        config: Its config as plain values.
        checksums: Checksum of each part of a dataset that is read from the user's
            files, by :func:`part_name`.
        file: The study itself, where no process can import it.
    """

    paper: Paper
    name: str
    config: Mapping[str, Any]
    checksums: Mapping[str, str] = field(default_factory=dict)
    file: StudyFile | None = None

    def __call__(self, cell: Mapping[str, Any]) -> Rows:
        """Measure one cell."""
        study = self._study()
        return study.of_cell(study.config_from(self.config), cell)

    def _study(self) -> Study:
        if self.file is not None:
            (entry,) = (e for e in studies_in_file(self.file) if e.name == self.name)
            return entry.study
        try:
            return study_of(self.paper, self.name)
        except StudyError as error:
            if not isinstance(error.__cause__, ModuleNotFoundError):
                raise
            raise StudyError(
                f"the study {self.paper.name}/{self.name} is not installed where this "
                "worker runs: install its package there, or use the local pool"
            ) from error

    def pack(self) -> dict[str, Any]:
        """Return the datasets that a remote process may lack; see ``Packable``."""
        return {part: data.pack_dataset(_load(part)) for part in self.checksums}

    def unpack(self, fetch: Callable[[str], Any]) -> None:
        """Load each dataset here, or fetch it."""
        for part, checksum in self.checksums.items():
            if not _found_here(part, checksum):
                data.register_dataset(data.unpack_dataset(fetch(part), checksum))


def part_name(name: str, split: str) -> str:
    """Return the name of a split: the dataset's own name for the training split.

    Example:
        >>> part_name("mnist", "train"), part_name("cifar10", "test")
        ('mnist', 'cifar10/test')
    """
    return name if split == "train" else f"{name}/{split}"


def _load(part: str) -> data.Dataset:
    name, _, split = part.partition("/")
    return data.load(name, split or "train")


def _found_here(part: str, checksum: str) -> bool:
    try:
        return _load(part).checksum == checksum
    except DataError:
        return False


@dataclass(frozen=True)
class Plan:
    """A study that can run: its config, device and data were checked.

    Attributes:
        entry: The study.
        spec: Spec that names its run folder; it holds the datasets' checksums.
        config: The study's own config.
        command: Command that runs it again.
        checksums: Checksums of the datasets that are read from the user's files.
    """

    entry: Entry
    spec: RunSpec
    config: Any
    command: str
    checksums: Mapping[str, str] = field(default_factory=dict)

    @property
    def work(self) -> StudyWork:
        """The function that computes a cell in any process."""
        plain = self.config.to_dict()
        entry = self.entry
        return StudyWork(entry.paper, entry.name, plain, self.checksums, entry.file)

    def finished(self, root: Path | str) -> tuple[int, int]:
        """Return how many cells are finished under a root, and how many there are."""
        cells = self.entry.study.cells(self.config)
        names = self.spec.paper, self.spec.study, self.spec.digest
        try:
            folder = RunFolder.open(Path(root).joinpath("runs", *names))
            return len(cells) - len(folder.pending(cells)), len(cells)
        except RunError:
            return 0, len(cells)


def plan_study(
    entry: Entry,
    *,
    scale: str,
    n_seeds: int | None = None,
    device: str | None = None,
    settings: Mapping[str, str] | None = None,
    elsewhere: bool = False,
) -> Plan:
    """Check a study before anything is computed, and load its data once.

    Args:
        entry: The study.
        scale: ``smoke``, ``quick`` or ``paper``.
        n_seeds: Trials per point in place of the preset's.
        device: Device of the networks, in place of the preset's.
        settings: Texts of further settings in place of the preset's, by name; several
            values have commas between them.
        elsewhere: Whether other machines compute; this one then needs no such device.
    """
    study = entry.study
    preset = study.config(scale)
    read = {name: _setting(preset, name, x) for name, x in (settings or {}).items()}
    config = study.config(scale, **{"n_seeds": n_seeds, "device": device, **read})
    if not elsewhere:
        check_device(config.device, "" if device else f"{entry.full_name} at {scale}")
    needed = {
        part_name(name, split): data.load(name, split)
        for name in study.datasets(config)
        for split in study.splits
    }
    sums = {name: dataset.checksum for name, dataset in needed.items()}
    spec = RunSpec(
        paper=entry.paper.name,
        study=entry.name,
        scale=scale,
        config={**config.to_dict(), **_read(entry, sums)},
        revision=study.revision,
        device=config.device,
        seeds=config.seeds,
    )
    from_folder = {
        part: sums[part]
        for part, dataset in needed.items()
        if data.needs_folder(dataset.name)
    }
    command = _command(entry, scale, config, bool(from_folder))
    return Plan(entry, spec, config, command, from_folder)


def _read(entry: Entry, sums: Mapping[str, Any]) -> dict[str, Any]:
    """Return the digests of a run's inputs other than its settings.

    The code of a file is one of them, since users raise no ``revision`` while trying
    things out; packages go by theirs.
    """
    code = {} if entry.file is None else {"file_digest": entry.file.digest}
    return {**({"data": sums} if sums else {}), **code}


def plan_again(entry: Entry, folder: RunFolder) -> Plan:
    """Return the plan of a run whose cells are all finished; no data is loaded.

    Raises:
        RunError: Cells are missing, or another version of the study made them.
    """
    spec, config = folder.spec, _config_again(entry, folder)
    from_folder = {
        part: digest
        for part, digest in spec.config.get("data", {}).items()
        if data.needs_folder(part.partition("/")[0])
    }
    command = _command(entry, spec.scale, config, bool(from_folder))
    cells = entry.study.cells(config)
    if missing := len(folder.pending(cells)):
        root = shlex.quote(str(folder.path.parents[3]))
        raise RunError(
            f"{missing} of {len(cells)} cells in {folder.path} are missing or damaged: "
            f"`{command} --out {root}` computes these and keeps the others"
        )
    return Plan(entry, spec, config, command, from_folder)


def _config_again(entry: Entry, folder: RunFolder) -> Any:
    """Return the config of a run, if this version of the study has the same."""
    study, spec = entry.study, folder.spec
    sums = spec.config.get("data", {})
    with suppress(TypeError, ValueError, AttributeError):
        config = study.config_from(spec.config)
        made = {**config.to_dict(), **_read(entry, sums)}
        if made == spec.config and study.revision == spec.revision:
            return config
    raise RunError(
        f"{folder.path} was made by another version of {entry.full_name}, which alone "
        "can judge it: run the study again, into a folder beside it"
    )


def check_device(name: str, preset: str = "") -> None:
    """Raise if a device is not available.

    Args:
        name: The device.
        preset: Name of the preset that sets it, if the user did not.
    """
    import torch

    try:
        with Exclusive(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about devices that torch has forgotten
            usable = torch.device(name).type != "meta"
            torch.empty(0, device=name)
    except (RuntimeError, AssertionError, NotImplementedError, ImportError):
        usable = False
    if not usable and preset:
        raise ConfigError(
            f"{preset} is set to run on device {name!r}, which is not here: pass "
            "--device cpu, which takes longer, or run it where there is one"
        )
    if not usable:
        raise ConfigError(
            f"device {name!r} was asked for and is not there: try 'cpu'"
            f"{', or cuda:0' if torch.cuda.is_available() else ''}"
        )


def kept_settings(*, here: bool) -> AbstractContextManager[None]:
    """Return a context that undoes what :func:`prepare_worker` sets in this process.

    Args:
        here: Whether cells are computed in this process, rather than in workers.
    """
    if not here:
        return nullcontext()
    from theodolite.instruments import preserve_process

    return preserve_process()


def prepare_worker() -> None:
    """Set one thread and deterministic algorithms in a worker process."""
    import torch

    torch.set_num_threads(1)
    # Not `use_deterministic_algorithms`, which takes seconds to load a compiler too.
    torch.set_deterministic_debug_mode("error")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def _setting(config: Any, name: str, text: str) -> Any:
    """Return the value of a setting that is given as text."""
    import msgspec

    kinds = get_type_hints(type(config))
    if name not in kinds:
        raise unknown_name("setting", name, kinds)
    several = get_origin(kinds[name]) is tuple
    given = [part for part in text.split(",") if part] if several else text
    try:
        return msgspec.convert(given, kinds[name], strict=False)
    except msgspec.ValidationError as wrong:
        like = _text(getattr(config, name))
        raise ConfigError(
            f"{name} was set to {text!r} ({wrong}): pass a value like {like!r}"
        ) from None


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _command(entry: Entry, scale: str, config: Any, from_folder: bool) -> str:
    name = entry.full_name if entry.file is None else shlex.quote(entry.file.path)
    parts = ["theodolite", "run", name, "--scale", scale]
    preset = entry.study.presets.get(scale, config)
    for setting in (one.name for one in fields(config)):
        value = getattr(config, setting)
        if value != getattr(preset, setting):
            flag = {"n_seeds": "--seeds", "device": "--device"}.get(setting)
            text = _text(value) if flag else f"{setting}={_text(value)}"
            parts += [flag or "--set", shlex.quote(text)]
    if from_folder:
        parts += ["--data", "DIR"]
    return " ".join(parts)
