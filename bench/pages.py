"""Rows of results to lines of a terminal and to a page of the documents."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Suite:
    """What a page says about the rows of a suite."""

    title: str
    about: str
    here: bool = True  # whether ``make bench`` can run it


SUITES = {
    "curvature": Suite(
        "Right with batch norm",
        "The largest eigenvalue of the Hessian of a small residual net in float64 and "
        "in train mode, whose running statistics differ from those of the batch. The "
        "truths are dense Hessians by double backward. Each tool gets a fresh copy and "
        "is used as its documentation says; the fourth column says which operator its "
        "answer belongs to. Cutting the data into four must not change an answer "
        "unless the tool says so: under `norm_mode='batch'` the partition is part of "
        "the operator, under `'full'` it is not, and `micro_batch` never changes "
        "anything.",
    ),
    "everyday_tools": Suite(
        "Finding the fault, counting layers",
        "What tools say of a network before or while it trains. Where a tool names a "
        "repair or a learning rate, a copy is trained with it by full-batch gradient "
        "descent, and its loss at the end is given; the finder gets all the data at "
        "once, as that training does, or batches of 32. Hessians are compared with "
        "dense ones by double backward, on small nets in float64 and train mode. "
        "Cockpit's default is the power method, which finds the eigenvalue of largest "
        "magnitude. BackPACK and Cockpit work in the passes of a training, so their "
        "effect on the model is not judged. Counts of layers are per sample, compared "
        "with counts by hand, and timed by the processor, the least of three. "
        "torchinfo also counts biases and the parameters of norms as MACs; it leaves "
        "out attention, applies a linear layer to one place of a sequence, and counts "
        "tied weights twice.",
    ),
    "curvature_speed": Suite(
        "Leading eigenvalues",
        "Five eigenvalues of largest magnitude of the Hessian of a 9-convolution "
        "residual net (19,034 parameters, 64 digits, float32), on running statistics, "
        "the only ones that both peers get right. Each tool runs at the loosest "
        "tolerance that brings it within 1e-3 of a float64 reference. Ours also "
        "bounds the residual of each value, and what float32 does to it, by one "
        "product in float64, which is counted. PyHessian is timed once, by the run "
        "that found its tolerance, the others by the least of two runs.",
    ),
    "hessian_products": Suite(
        "Hessian-vector products",
        "One product of the same net's Hessian, in gradients of the same loss. Each "
        "product is first compared with a float64 one.",
    ),
    "whole_data": Suite(
        "Batch statistics of all the data",
        "One product of the Hessian of a residual net of width 16 on 128 images of "
        "16 × 16 in float32, with batch statistics of all of them, in gradients of the "
        "same loss: as one graph that is kept, in four chunks that go from norm to "
        "norm together, and in four chunks by turns, which is what is left where "
        "memory is that of one chunk. The first takes memory for time, the last time "
        "for memory. Products are compared with float64; where they differ in the "
        "third digit, rounding has moved a ReLU across its kink.",
    ),
    "whole_data_gpu": Suite(
        "Batch statistics of all the data on a GPU",
        "The same nets on images of 32 × 32, and a ResNet-20 of width 16, in gradients "
        "of all the data in train mode by wall time (of ten parts one after another "
        "for the last network), the least of two calls after one. On the host lies "
        "what chunks carry, or the one graph. Products are compared with the first of "
        "their statistics; for 50,000 images no other way fits to compare with. With "
        "channels last cuDNN takes convolutions of 2,500 images by Fourier transforms, "
        "in 2,112 launches each by a profile made by hand, and the plain gradient of "
        "5,000 images in two halves took 3.0 times that of all at once. Made by "
        "`python -m bench.whole_data_gpu`, which `make bench` leaves out.",
        here=False,
    ),
    "block_jacobian": Suite(
        "Jacobian of a residual block",
        "Singular values of the block's outputs by its inputs, samples coupled by "
        "batch norm. Distributions are compared first, within the bound that ours "
        "states.",
    ),
    "tangent_kernel": Suite(
        "Tangent kernel",
        "The whole empirical kernel of 256 samples with 10 outputs; entries are "
        "compared first.",
    ),
    "neural_collapse": Suite(
        "Neural collapse",
        "NC1 to NC4 of features behind a ReLU in float32, in batches of 1,000, beside "
        "the formulas written in matrices and beside those of the published package "
        "`neural-collapse`, both written anew, with general pseudo-inverses as the "
        "formulas say (symmetric ones would take about a quarter off theirs at C = "
        "10). Numbers are first compared with the "
        "matrix formulas in float64, decisions sample by sample. Ours keeps the "
        "features that it is given, which does not count as memory; with none allowed "
        "it folds them into float64 sums of width by width as they come. What bounds "
        "it: means must be known before deviations, so that features are read twice. "
        "At C = 10 adding up rows by class takes 10 ms of one core and one product "
        "with C - 1 directions and C rows of a head, with norms, 21 ms, of 43 ms in "
        "all; near collapse the means are taken off first and told anew, 11 ms more. "
        "At 31 ms, with nothing else to do, it would be 22×.",
    ),
    "closed_forms": Suite(
        "Closed forms",
        "What the theory computes without differentiating, beside automatic "
        "differentiation and dense matrices.",
    ),
    "training_cpu": Suite(
        "Training small networks",
        "2-shortcut networks of width 10 on 5,000 whitened digits, full-batch gradient "
        "descent from small weights in float32, on one core, beside the loop that one "
        "writes in PyTorch: forward, backward, SGD step. All losses along the way are "
        "compared first. Ours moves a stack, and its time is that of one cell; the "
        "loop takes 60 steps, ours on moments 1,000, and both are scaled to one. "
        "Compiling is not counted: compiled kernels are kept on disk.",
    ),
    "training_images": Suite(
        "Training convolutional networks",
        "A grid of four small residual networks with batch norm in float32 on digits, "
        "two epochs at a rate of 0.01, by one call of `train_many` on one thread, "
        "beside the loops that one writes in PyTorch, as many processes as there are "
        "cores. Mean losses of every epoch are compared first. Processor time is that "
        "of all processes, without imports, the least of two runs in turns; the ratio "
        "was 1.0 to 1.2 in three repetitions. The processes use all cores, ours one, "
        "so that one call saves the loops and no waiting. The memory that a step "
        "frees is kept for the next; before, filling it with zeros again took a tenth "
        "of the time. Convolutions are three quarters of a step, batch norms an "
        "eighth, and both ways call the same kernels of torch. Maps with channels last "
        "would take 3 to 25 % less time, but torch then rounds batch statistics at "
        "1e-5 and not at 1e-7, so that they are left to the user.",
    ),
    "cuda": Suite(
        "Hessian-vector products on a GPU",
        "One product of networks with random weights in float32, TF32 off, in "
        "gradients of the same loss by wall time, the device waited for; every product "
        "is first compared with float64. With random weights and batch statistics "
        "rounding moves ReLUs across their kinks, for all ways alike: a product counts "
        "as right within twice of what plain double backward in float32 is off, or "
        "1e-3. `theodolite` is a product within a measurement, for which the model is "
        "opened once. Kernels are those of one product, copies among them, and the "
        "share of its time in which one is at work, the kernels' time while profiled "
        "over the time while not: what is far below all of it waits for launches. "
        "Peers run attention on torch's plain backend, the only one that they can "
        "differentiate twice. Made by `python -m bench.cuda`, which `make bench` "
        "leaves out.",
        here=False,
    ),
    "gpu_memory": Suite(
        "Memory of products on a GPU",
        "What one product takes beyond the model and its data, beside forecasts from a "
        "few samples: 2.7 times what the graph keeps, and 1.2 times the tensors that a "
        "product has alive, operator by operator. The second decides on a GPU where "
        "the first does not fit, and is to cover what is taken; torch's allocator sets "
        "more aside where it can. By a trial that did what `python -m "
        "bench.gpu_memory` does, with 1.15, and is shown with 1.2.",
        here=False,
    ),
    "large_model": Suite(
        "A large model",
        "The largest eigenvalue and the trace of the Hessian of GPT-2-style models "
        "with random weights, of one sequence of random tokens in float32; errors "
        "include what rounding does to the graph. Made by `python -m "
        "bench.large_model`, which `make bench` leaves out.",
        here=False,
    ),
    "training_gpu": Suite(
        "A grid on one GPU",
        "10 seeds × 9 rates of 2-shortcut networks of width 10 on 60,000 samples in "
        "float32, all cells at once, beside the PyTorch loop that trains one after the "
        "other (wall time, the device waited for; the loop is timed on one cell and "
        "scaled). Losses along the way are compared first. The share counts three "
        "products a layer, sample and step, against the GPU's rate for large float32 "
        "matrix products in the same process. What bounds the kernel of CUDA C: 61 % "
        "of its instructions are those products (the rest are products made again, "
        "sums over threads, and reads of shared memory), and in 74 % of all cycles one "
        "is issued (profiled on an H200). Short loops are quicker than long code: an "
        "earlier form of it, with the gradient written out, took 1.4 times as long and "
        "issued in 51 % of cycles, with a loop for it 1.13 times; the present one "
        "takes 1.15 times as long with its products written out. Forms written out "
        "also spill a few registers more. That instructions do not fit their cache "
        "would explain it but was not shown: without gradients, code written out was "
        "no slower. Made by `python -m bench.training_gpu`, which `make bench` leaves "
        "out.",
        here=False,
    ),
    "kernel_counts": Suite(
        "Instructions of the GPU kernel",
        "What a unit of two layers of width 10, forward and back, takes of 64 samples, "
        "in instructions of a warp, compiled for compute capability 9.0 and taken "
        "apart, which needs no GPU. Useful are 1,200: three products a layer. Threads "
        "carry columns and exchange gradients alone, and loops count as often as they "
        "go round. An upper limit of the rate, no measure of it. "
        "Made by `python -m bench.kernel_counts`.",
        here=False,
    ),
    "bookkeeping": Suite(
        "Bookkeeping of a grid",
        "Everything but the engine's own steps: expanding the axes, drawing weights, "
        "rows, files written and read back, as a share of the processor time of the "
        "whole call, in one process.",
    ),
}

_HEADS = {
    "task": "task",
    "peer": "beside",
    "ratio": "time, theirs over ours",
    "gradients": "cost in gradients",
    "agree": "results agree",
    "memory": "peak memory, theirs : ours",
    "peak": "peak memory",
    "counted": "arithmetic, in gradients",
    "graphs": "forecast, by the graph",
    "tensors": "forecast, by tensors",
    "taken": "taken",
    "aside": "set aside",
}
_OPENING = """# Benchmarks

What you may expect beside the tools that you know: is the answer right, what does it
cost? Columns say how many times as long the other way takes (above 1, this one is
faster), as ratios of processor time of one thread (on a GPU, of wall time), good to
about 30 %: the least of two to four runs, or of as many as a suite says, while another
suite runs on the next core. Results are compared before anything is timed; what is
wrong or fails is said to be so and not timed. Peak memory is the rise in a process of
its own.

To see the ratios of your machine, run `make bench`, which installs the other tools into
an environment of their own and writes this page from `bench/results/`. Suites run one a
core (`BENCH_JOBS=1 make bench`: one after the other) and say what they do meanwhile.
"""


def plain(row: dict[str, Any]) -> str:
    """Return a row as one line of text."""
    return "  ".join(text for key in row if (text := _cell(key, row[key])) != "")


def write_docs(results: Path) -> Path:
    """Write the page from the results there are, and return where."""
    parts = [_OPENING]
    for name in SUITES:
        path = results / f"{name}.json"
        if path.is_file():
            parts.append(_section(name, json.loads(path.read_text())))
        elif (files := sorted((results / name).glob("*.json"))) and name in _MODELS:
            records = [json.loads(file.read_text()) for file in files]
            parts.append(_section(name, _MODELS[name](records)))
    page = results.parent.parent / "docs" / "benchmarks.md"
    page.write_text("\n".join(parts))
    return page


def _large(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a row a number of each large model."""
    rows = []
    for record in sorted(records, key=lambda record: record["parameters"]):
        made = f"{record['device']}, torch {record['versions']['torch']}"
        model = f"{record['parameters']:,} parameters, {record['tokens']} tokens"
        for name in ("largest_eigenvalue", "trace"):
            if name not in record:
                continue  # the run was over before
            numbers, product = record[name], record["product"]
            on_gpu = "device_peak_gib" in numbers
            clock = "seconds" if on_gpu else "processor_seconds"
            peak = numbers["device_peak_gib" if on_gpu else "host_peak_gib"]
            rows.append(
                {
                    "task": f"{name.replace('_', ' ')}, {model}; {made}",
                    "value": _stated(numbers),
                    "time, in products": f"{numbers[clock] / product[clock]:.0f}",
                    "peak": f"{peak:.1f} GiB",
                    "note": f"{numbers['method']}; {numbers['status']}",
                }
            )
    return {"versions": {"theodolite": records[-1]["versions"]["theodolite"]}} | {
        "rows": rows
    }


def _stated(numbers: dict[str, Any]) -> str:
    """Return a number with its bound, or with its interval where chance is in it."""
    if "level" in numbers:
        low, high = (f"{numbers[end]:,.0f}" for end in ("low", "high"))
        return f"{numbers['value']:,.0f}, at {numbers['level']:.0%} {low} to {high}"
    bound = f"{numbers['value']:.6g} ± {numbers['error']:.2g}"
    return f"{bound}, relative residual {numbers['residual']:.0e}"


# Suites whose results are a file a model.
_MODELS = {"large_model": _large}


def _section(name: str, record: dict[str, Any]) -> str:
    suite, rows = SUITES[name], record["rows"]
    used = ", ".join(
        f"{package} {number}"
        for package, number in record["versions"].items()
        if number != "absent"
    )
    return f"## {suite.title}\n\n{suite.about}\n\n{_table(rows)}\n\nWith {used}.\n"


def _table(rows: list[dict[str, Any]]) -> str:
    keys = list(dict.fromkeys(key for row in rows for key in row if key != "suite"))
    keys = [key for key in keys if any(row.get(key) not in ("", None) for row in rows)]
    keys.sort(key=lambda key: key == "note")  # the longest column comes last
    lines = [
        [_HEADS.get(key, key) for key in keys],
        ["---"] * len(keys),
        *[[_cell(key, row.get(key)) for key in keys] for row in rows],
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(key: str, value: Any) -> str:
    if value is None:
        return "—"
    if key == "ratio":
        return f"{value:.1f}×" if value < 100 else f"{value:.0f}×"
    if key == "gradients":
        return f"{value:.1f}"
    return str(value).replace("|", "\\|")
