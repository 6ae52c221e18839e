"""Count all tracked source text by package: ``python -m tests.lines``.

Generated pages, committed rows and pinned numbers are data and not counted.
"""

import subprocess
from collections import Counter
from pathlib import Path

SOURCE = {".py", ".pyi", ".js", ".css", ".j2", ".html", ".cu", ".cuh", ".sh", ".toml"}
BUDGETS = {"src/theodolite": 82_000, "src/theodolite_papers": 36_000, "tests": 56_000}


def package_of(path: Path) -> str:
    """Return the folder that a file counts for."""
    depth = 3 if path.parts[:2] == ("src", "theodolite") and len(path.parts) > 3 else 2
    known = path.parts[:2] == ("tests", "known_failures") or path.parts[0] == "src"
    return "/".join(path.parts[:depth] if known else path.parts[:1])


def count() -> dict[str, Counter]:
    """Return lines of Python and of other source text by package."""
    names = subprocess.run(
        ["git", "ls-files"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    lines: dict[str, Counter] = {"Python": Counter(), "other": Counter()}
    for path in map(Path, names):
        if path.suffix in SOURCE and path.is_file():
            kind = "Python" if path.suffix == ".py" else "other"
            lines[kind][package_of(path)] += len(path.read_text().splitlines())
    return lines


def main() -> None:
    """Print the table and the totals beside their budgets."""
    lines = count()
    print(f"{'package':34} {'Python':>8} {'other':>7}")
    for name in sorted({*lines["Python"], *lines["other"]}):
        print(f"{name:34} {lines['Python'][name]:8,} {lines['other'][name]:7,}")
    for name, budget in BUDGETS.items():
        own = {
            key: value
            for key, value in lines["Python"].items()
            if (key + "/").startswith(name + "/") and key != "tests/known_failures"
        }
        print(f"{name}: {sum(own.values()):,} lines of Python (budget {budget:,})")


if __name__ == "__main__":
    main()
