"""Count the instructions of the stacked engine's kernel; no GPU is needed.

``python -m bench.kernel_counts`` compiles it for compute capability 9.0 with ``nvcc``,
takes the program apart with the tools of the CUDA toolkit and counts what the loops
over units issue: one unit forward and one back, for a block of samples. It says what a
GPU must issue at least, not how long that takes.
"""

import json
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from theodolite.core import ShortcutBlueprint
from theodolite.training.engines.stacked.cuda_kernel import LAYOUT, primitives, source

WIDTH, SHORTCUT, SAMPLES = 10, 2, 64
CAPABILITY, REGISTER_FILE, SHARED, WARP = 90, 65_536, 233_472, 32
# Shared memory that the driver keeps of every block.
RESERVED = 1_024
# One product forward and two back a layer, as instructions of 32 threads.
USEFUL = 3 * SHORTCUT * WIDTH**2 * SAMPLES // WARP
KINDS = {
    "tensor products": ("HMMA",),
    "float32 arithmetic": ("FFMA", "FMUL", "FADD"),
    "exchanges": ("SHFL", "LDS", "STS"),
    "loads and stores": ("LDG", "STG", "LDL", "STL", "LDGSTS"),
}


def row(code: str, usage: str) -> dict[str, Any]:
    """Return what the compiled kernel takes for one unit and 64 samples."""
    issued = in_unit_loops(code, _rounds())
    share = SAMPLES / LAYOUT.block
    registers, stack, shared = (
        int(re.findall(rf"{name}:(\d+)", usage)[0])
        for name in ("REG", "STACK", "SHARED")
    )
    counts = {
        kind: round(share * sum(issued[name] for name in names))
        for kind, names in KINDS.items()
    }
    by_registers = REGISTER_FILE // (WARP * (-(-registers // 8) * 8))
    return {
        "task": str(LAYOUT),
        "registers a thread": registers,
        "spilled bytes a thread": stack,
        "warps a multiprocessor": min(by_registers, SHARED // (shared + RESERVED)),
        "kilobytes of code": round(16 * len(_instructions(code)) / 1000),
        "instructions": round(share * issued.total()),
        **counts,
        "useful products by instructions": f"{USEFUL / (share * issued.total()):.0%}",
    }


def _rounds() -> dict[int, int]:
    """Return how often loops inside those over units go round, by their products.

    That over two rows of a matrix, and that over the samples of a gradient.
    """
    half = WIDTH // 2
    return {
        2 * WIDTH * LAYOUT.samples_per_thread: half,
        4 * half**2: LAYOUT.samples_per_thread,
    }


def assembled() -> tuple[str, str]:
    """Return the kernel's machine code as text, and what the assembler says it uses."""
    blueprint = ShortcutBlueprint(
        width=WIDTH, depth=SHORTCUT, shortcut=SHORTCUT, mid="relu"
    )
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "lanes.cu", Path(folder) / "lanes.cubin"
        given.write_text(primitives() + source(blueprint))
        options = ("-std=c++17", f"-arch=sm_{CAPABILITY}", "-cubin", "-o", made)
        _output("nvcc", *options, given)
        code = _output("nvdisasm", "-c", made)
        usage = _output("cuobjdump", "-res-usage", made)
    _, _, mine = code.partition(".text.lanes:")
    return mine.partition(".section")[0], usage.partition("Function lanes:")[2]


def _output(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def in_unit_loops(code: str, rounds: dict[int, int]) -> Counter[str]:
    """Count what the two loops over units issue: units forward, units back.

    Args:
        code: Machine code as text.
        rounds: How often loops inside those go round, by their products.
    """
    names = [name for name, _ in _instructions(code)]
    loops = [(a, b) for a, b in _jumps(code) if b - a > 50]
    within = {
        (a, b): rounds[names[a : b + 1].count("FFMA")]
        for a, b in loops
        if not any(_holds((a, b), other) for other in loops)
        and names[a : b + 1].count("FFMA") in rounds
    }
    left = [loop for loop in loops if loop not in within]
    units = [a for a in left if not any(_holds(a, b) for b in left)]
    if len(units) != 2:
        raise RuntimeError(f"{len(units)} loops over units were found, not 2")
    issued = Counter[str]()
    for unit in units:
        issued += Counter(names[unit[0] : unit[1] + 1])
        for loop, times in within.items():
            if _holds(unit, loop):
                for name, count in Counter(names[loop[0] : loop[1] + 1]).items():
                    issued[name] += (times - 1) * count
    return issued


def _holds(loop: tuple[int, int], other: tuple[int, int]) -> bool:
    return loop != other and loop[0] <= other[0] and other[1] <= loop[1]


def _instructions(code: str) -> list[tuple[str, str]]:
    """Return names and operands."""
    pattern = r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.]+)\s*(.*?);"
    matches = (re.search(pattern, line) for line in code.splitlines())
    return [(one[1].split(".")[0], one[2]) for one in matches if one]


def _jumps(code: str) -> list[tuple[int, int]]:
    """Return the jumps backwards, as numbers of instructions: to and from where."""
    labels, jumps, number = dict[str, int](), list[tuple[int, int]](), 0
    for line in code.splitlines():
        if label := re.match(r"^(\.L_x_\d+):", line):
            labels[label[1]] = number
        for name, operands in _instructions(line):
            to = re.search(r"\.L_x_\d+", operands)
            if name == "BRA" and to and to[0] in labels:
                jumps.append((labels[to[0]], number))
            number += 1
    return jumps


def main() -> None:
    """Print the counts and write them down."""
    counts = row(*assembled())
    print(counts)
    version = re.findall(r"V([\d.]+)", _output("nvcc", "--version"))[0]
    record = {"suite": "kernel_counts", "versions": {"nvcc": version}, "rows": [counts]}
    path = Path(__file__).parent / "results" / "kernel_counts.json"
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
