"""What a run is: a config and its names. The hash of it names the folder."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from theodolite.core import ConfigError, plain
from theodolite.runs.folder.canonical import canonical, short_hash

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """One run of one study.

    Attributes:
        paper: Package of the study, such as ``li2016demystifying``.
        study: Module of the study.
        scale: Label of the preset (smoke, quick, paper); not part of the hash.
        config: Every setting that can change a value.
        revision: Raised by the study when its code changes the values.
        device: Where the networks live.
        seeds: Root seeds, for the record.

    Example:
        >>> spec = RunSpec(paper="p", study="s", scale="quick", config={"width": 8})
        >>> spec.digest
        'd2a7672602ae'
    """

    paper: str
    study: str
    scale: str
    config: Mapping[str, Any] = field(hash=False)
    revision: int = 1
    device: str = "cpu"
    seeds: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for what in ("paper", "study"):
            name = getattr(self, what)
            if not _NAME.fullmatch(name):
                raise ConfigError(
                    f"{what} {name!r} cannot name a folder: use letters, digits, "
                    "dots, dashes and underscores"
                )
        # Plain values, so that a spec equals the one read back from its folder.
        object.__setattr__(self, "config", json.loads(canonical(self.config)))
        object.__setattr__(self, "seeds", tuple(plain(list(self.seeds))))

    @property
    def digest(self) -> str:
        """Twelve hexadecimal characters that name the run's folder."""
        return short_hash(canonical(self.identity))

    @property
    def identity(self) -> dict[str, Any]:
        """What the digest is taken of: all that can change a value."""
        return {
            "paper": self.paper,
            "study": self.study,
            "config": self.config,
            "revision": self.revision,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the spec as plain JSON values."""
        return {
            **self.identity,
            "scale": self.scale,
            "device": self.device,
            "seeds": list(self.seeds),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` wrote; further keys are ignored.

        Raises:
            KeyError: One is missing.
            TypeError: One is of another type.
        """
        kinds = {"scale": str, "device": str, "revision": int, "config": Mapping}
        for name, kind in kinds.items():
            if not isinstance(saved[name], kind):
                raise TypeError(f"{name} is {type(saved[name]).__name__}")
        return cls(
            paper=saved["paper"],
            study=saved["study"],
            scale=saved["scale"],
            config=saved["config"],
            revision=saved["revision"],
            device=saved["device"],
            seeds=tuple(saved["seeds"]),
        )
