"""The spec of a run: its config and names, and the hash that names its folder.

The hash is that of canonical JSON, so that equal configs have equal hashes.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from theodolite.core import ConfigError, to_json_values

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
        device: Device of the networks.
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
        object.__setattr__(self, "seeds", tuple(to_json_values(list(self.seeds))))

    @property
    def digest(self) -> str:
        """Twelve hexadecimal characters that name the run's folder."""
        return short_hash(canonical(self.identity))

    @property
    def identity(self) -> dict[str, Any]:
        """Input of the digest: all that can change a value."""
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


def canonical(value: Any, what: str = "config") -> str:
    """Return a value as canonical JSON.

    Key order, tuples or lists, sets, NumPy scalars or Python numbers make no
    difference; 1 and 1.0 do, because a study may treat them differently.

    Args:
        value: Mappings, sequences, sets, arrays, strings, finite numbers, None.
        what: Name of the value in the error.

    Example:
        >>> canonical({"b": (1, 2), "a": np.float64(0.5)})
        '{"a":0.5,"b":[1,2]}'
    """
    try:
        return _dump(_settled(value))
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"the {what} cannot be saved ({error}): use text, finite numbers, "
            "booleans, None, and lists or mappings of them"
        ) from error


def short_hash(text: str, length: int = 12) -> str:
    """Return the first hexadecimal characters of the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))


def _settled(value: Any) -> Any:
    if isinstance(value, Mapping):
        settled = {str(key): _settled(item) for key, item in value.items()}
        if len(settled) != len(value):
            raise ValueError(f"two keys of {list(value)} read the same as text")
        return settled
    if isinstance(value, set | frozenset):
        return sorted((_settled(item) for item in value), key=_dump)
    if isinstance(value, np.ndarray):
        return _settled(value.tolist())
    if isinstance(value, list | tuple):
        return [_settled(item) for item in value]
    return to_json_values(value)
