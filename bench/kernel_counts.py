"""Count the instructions of the stacked engine's kernels; no card is needed.

``python -m bench.kernel_counts`` compiles every layout for compute capability 9.0 with
the assembler that Triton brings, takes the program apart and counts what the loops over
units hold: one unit forward and one back, for a block of samples. It says what a card
must issue at least, not how long that takes.
"""

import json
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.telling import told
from theodolite.training.engines.stacked.columns import columns_kernel
from theodolite.training.engines.stacked.kernel import passes_kernel
from theodolite.training.engines.stacked.triton import COLUMNS, TILES, Columns, Tile

WIDTH, SHORTCUT, SAMPLES = 10, 2, 64
CAPABILITY, REGISTER_FILE, WARP = 90, 65_536, 32
# One product forward and two back a layer, as instructions of 32 threads.
USEFUL = 3 * SHORTCUT * WIDTH**2 * SAMPLES // WARP
KINDS = {
    "tensor products": ("HMMA",),
    "float32 arithmetic": ("FFMA", "FMUL", "FADD"),
    "exchanges": ("SHFL", "LDS", "STS"),
    "loads and stores": ("LDG", "STG", "LDL", "STL", "LDGSTS"),
}


def run() -> Iterator[dict[str, Any]]:
    """Yield a row a layout."""
    layouts = [*TILES, *COLUMNS]
    for layout in told((str(layout), layout) for layout in layouts):
        code, usage = assembled(layout)
        yield row(layout, code, usage)


def row(layout: Tile | Columns, code: str, usage: str) -> dict[str, Any]:
    """Return what a compiled layout takes for one unit and 64 samples."""
    found = in_unit_loops(code)
    share = SAMPLES / layout.block
    registers, stack = (
        int(re.findall(rf"{name}:(\d+)", usage)[0]) for name in ("REG", "STACK")
    )
    issued = share * sum(found.values())
    counts = {
        kind: round(share * sum(found[name] for name in names))
        for kind, names in KINDS.items()
    }
    return {
        "task": str(layout),
        "registers a thread": registers,
        "spilled bytes a thread": stack,
        "warps a multiprocessor": REGISTER_FILE // (WARP * (-(-registers // 8) * 8)),
        "instructions": round(issued),
        **counts,
        "useful products by instructions": f"{USEFUL / issued:.0%}",
    }


def assembled(layout: Tile | Columns) -> tuple[str, str]:
    """Return a layout's machine code as text, and what the assembler says it uses."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel, fixed = _kernel(layout)
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
    tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        return (
            _output(tools / "nvdisasm", "-c", file.name),
            _output(tools / "cuobjdump", "-res-usage", file.name),
        )


def _kernel(layout: Tile | Columns) -> tuple[Any, dict[str, Any]]:
    shared = {"width": WIDTH, "shortcut": SHORTCUT, "skip": True, "relu": True}
    if isinstance(layout, Columns):
        return columns_kernel, {**shared, "each": layout.each}
    tile = {"padded": 16, "block": layout.block, "precision": layout.precision}
    return passes_kernel, {**shared, **tile}


def _output(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def in_unit_loops(code: str) -> Counter[str]:
    """Count instructions in the two innermost loops: units forward, units back."""
    names, labels, jumps = list[str](), dict[str, int](), list[tuple[int, int]]()
    for line in code.splitlines():
        if label := re.match(r"^(\.L_x_\d+):", line):
            labels[label[1]] = len(names)
        elif found := re.search(
            r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.]+)\s*(.*?);", line
        ):
            to = re.search(r"\.L_x_\d+", found[2])
            if found[1].startswith("BRA") and to and to[0] in labels:
                jumps.append((labels[to[0]], len(names)))
            names.append(found[1].split(".")[0])
    loops = [(a, b) for a, b in jumps if b - a > 50]
    inner = [
        (a, b)
        for a, b in loops
        if not any(a <= c and d <= b and (a, b) != (c, d) for c, d in loops)
    ]
    if len(inner) != 2:
        raise RuntimeError(f"{len(inner)} innermost loops were found, not 2")
    return sum((Counter(names[a : b + 1]) for a, b in inner), Counter[str]())


def main() -> None:
    """Print a row a layout and write them all down."""
    import triton

    rows = []
    for found in run():
        rows.append(found)
        print(found, flush=True)
    record = {
        "suite": "kernel_counts",
        "versions": {"triton": triton.__version__},
        "rows": rows,
    }
    path = Path(__file__).parent / "results" / "kernel_counts.json"
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
