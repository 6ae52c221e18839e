"""Count the instructions of the stacked engine's kernels; no card is needed.

``python -m bench.kernel_counts`` compiles every layout for compute capability 9.0, with
the assembler that Triton brings and with ``nvcc`` where it is, takes the program apart
and counts what the loops over units issue: one unit forward and one back, for a block
of samples. It says what a card must issue at least, not how long that takes.
"""

import json
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.telling import told
from theodolite.core import ShortcutBlueprint
from theodolite.training.engines.stacked.kernel import passes_kernel
from theodolite.training.engines.stacked.lanes import LAYOUT, Lanes, primitives, source
from theodolite.training.engines.stacked.triton import TILES, Tile

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


def run() -> Iterator[dict[str, Any]]:
    """Yield a row a layout; without ``nvcc``, of Triton's alone."""
    layouts = [*TILES, *([LAYOUT] if shutil.which("nvcc") else [])]
    for layout in told((str(layout), layout) for layout in layouts):
        code, usage = assembled(layout)
        yield row(layout, code, usage)


def row(layout: Tile | Lanes, code: str, usage: str) -> dict[str, Any]:
    """Return what a compiled layout takes for one unit and 64 samples."""
    found = in_unit_loops(code, _rounds(layout))
    share = SAMPLES / layout.block
    registers, stack, shared = (
        int(re.findall(rf"{name}:(\d+)", usage)[0])
        for name in ("REG", "STACK", "SHARED")
    )
    issued = share * sum(found.values())
    counts = {
        kind: round(share * sum(found[name] for name in names))
        for kind, names in KINDS.items()
    }
    by_registers = REGISTER_FILE // (WARP * (-(-registers // 8) * 8))
    return {
        "task": str(layout),
        "registers a thread": registers,
        "spilled bytes a thread": stack,
        "warps a multiprocessor": min(by_registers, SHARED // (shared + RESERVED)),
        "kilobytes of code": round(16 * len(_instructions(code)) / 1000),
        "instructions": round(issued),
        **counts,
        "useful products by instructions": f"{USEFUL / issued:.0%}",
    }


def _rounds(layout: Tile | Lanes) -> dict[int, int]:
    """Return how often loops inside those over units go round, by their products.

    That over two rows of a matrix, and that over the samples of a gradient.
    """
    if isinstance(layout, Tile):
        return {}
    half = WIDTH // 2
    return {2 * WIDTH * layout.each: half, 4 * half**2: layout.each}


def assembled(layout: Tile | Lanes) -> tuple[str, str]:
    """Return a layout's machine code as text, and what the assembler says it uses."""
    import triton

    binary = _by_nvcc(layout) if isinstance(layout, Lanes) else _by_triton(layout)
    name = "lanes" if isinstance(layout, Lanes) else "passes_kernel"
    tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        code = _output(tools / "nvdisasm", "-c", file.name)
        usage = _output(tools / "cuobjdump", "-res-usage", file.name)
    _, _, mine = code.partition(f".text.{name}:")
    return mine.partition(".section")[0], usage.partition(f"Function {name}:")[2]


def _by_nvcc(layout: Lanes) -> bytes:
    blueprint = ShortcutBlueprint(
        width=WIDTH, depth=SHORTCUT, shortcut=SHORTCUT, mid="relu"
    )
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "lanes.cu", Path(folder) / "lanes.cubin"
        given.write_text(primitives() + source(blueprint, layout))
        options = ("-std=c++17", f"-arch=sm_{CAPABILITY}", "-cubin", "-o", made)
        _output("nvcc", *options, given)
        return made.read_bytes()


def _by_triton(layout: Tile) -> bytes:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel, fixed = passes_kernel, _fixed(layout)
    names = list(kernel.arg_names)
    whole = {name: "i32" for name in ("samples", "stride", "tiles", "splits", "units")}
    types = {**whole, "alive": "*i32", "scale": "fp32"}
    signature = {n: "constexpr" if n in fixed else types.get(n, "*fp32") for n in names}
    aligned = [n for n in names if signature[n].startswith("*") or n == "stride"]
    attributes = {(names.index(n),): [["tt.divisibility", 16]] for n in aligned}
    options = {"num_warps": layout.warps, "num_stages": layout.stages}
    if layout.registers is not None:
        options["maxnreg"] = layout.registers
    source = ASTSource(
        fn=kernel, signature=signature, constexprs=fixed, attrs=attributes
    )
    made = triton.compile(
        source, target=GPUTarget("cuda", CAPABILITY, WARP), options=options
    )
    return made.asm["cubin"]


def _fixed(layout: Tile) -> dict[str, Any]:
    shared = {"width": WIDTH, "shortcut": SHORTCUT, "skip": True, "relu": True}
    tile = {"padded": 16, "block": layout.block, "precision": layout.precision}
    return shared | tile


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
    found = Counter[str]()
    for unit in units:
        found += Counter(names[unit[0] : unit[1] + 1])
        for loop, times in within.items():
            if _holds(unit, loop):
                for name, count in Counter(names[loop[0] : loop[1] + 1]).items():
                    found[name] += (times - 1) * count
    return found


def _holds(loop: tuple[int, int], other: tuple[int, int]) -> bool:
    return loop != other and loop[0] <= other[0] and other[1] <= loop[1]


def _instructions(code: str) -> list[tuple[str, str]]:
    """Return names and operands."""
    pattern = r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.]+)\s*(.*?);"
    found = (re.search(pattern, line) for line in code.splitlines())
    return [(one[1].split(".")[0], one[2]) for one in found if one]


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


def _nvcc_version() -> dict[str, str]:
    if not shutil.which("nvcc"):
        return {}
    return {"nvcc": re.findall(r"V([\d.]+)", _output("nvcc", "--version"))[0]}


def main() -> None:
    """Print a row a layout and write them all down."""
    import triton

    rows = []
    for found in run():
        rows.append(found)
        print(found, flush=True)
    record = {
        "suite": "kernel_counts",
        "versions": {"triton": triton.__version__, **_nvcc_version()},
        "rows": rows,
    }
    path = Path(__file__).parent / "results" / "kernel_counts.json"
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
