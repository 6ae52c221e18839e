"""Set-ups by other authors: the sealed half is as it was, the open half is whole."""

import hashlib
import re
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

AUTHORED = Path(__file__).parents[1] / "known_failures" / "authored"


def test_the_sealed_half_is_what_was_committed():
    sealed = (AUTHORED / "sealed.tar.xz").read_bytes()
    stated = re.search(r"`([0-9a-f]{64})`", (AUTHORED / "README.md").read_text())
    assert hashlib.sha256(sealed).hexdigest() == stated[1]


def test_the_open_half_has_the_stated_set_ups(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(AUTHORED), *sys.path])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    evaluate = import_module("evaluate")
    names, states = [], Counter()
    for name, state, _, _ in evaluate.entries(AUTHORED):
        names.append((name, state))
        states[state] += 1
    assert len(set(names)) == len(names)
    table = (AUTHORED / "README.md").read_text()
    assert f"| broken, each with a repaired twin | {states['broken']} |" in table
    assert f"| sound | {states['sound']} |" in table
    assert states["repaired"] == states["broken"] == 60
