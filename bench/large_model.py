"""λmax and trace of a large language model's Hessian, with what they took.

``python -m bench.large_model --config bench/configs/gpt2_1300m.json --device cuda``
builds a GPT-2 from a config, in float32 with random weights, takes one batch of random
token ids, says what it will take, measures both numbers and writes a row of them, with
errors, residuals, seconds and peak memory, to ``--out``. ``--tiny --device cpu`` does
so with a model of some thousand parameters. ``make bench`` leaves it out.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor

from bench import command_line
from bench.gpt2 import Config, build, next_token_loss
from bench.peak_memory import forget_peak, peak_mib
from bench.versions import versions
from theodolite.core import TheodoliteError
from theodolite.instruments import Hessian, extreme_eigenvalues, memory_forecast, trace
from theodolite.instruments.solvers.lanczos import Placement

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "large_model"
GIB = 2**30


def options(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--config", type=Path, default=HERE / "configs" / "gpt2_1300m.json")
    add("--tiny", action="store_true", help="a model of some thousand parameters")
    add("--device", default="cuda")
    add("--batch", type=int, default=1, help="sequences")
    add("--sequence", type=int, default=256, help="tokens of each")
    add("--basis", default="auto", help="device, host, shared or auto")
    add("--vectors", type=int, help="that the basis holds; the fewest by default")
    add("--tol", type=float, default=1e-3, help="wanted relative residual of λmax")
    add("--products", type=int, default=60, help="for λmax, at most")
    add("--probes", type=int, default=120, help="products for the trace")
    add("--sketch", type=int, default=0, help="vectors kept for the trace")
    add("--seed", type=int, default=0)
    add("--out", type=Path, default=RESULTS, help="folder for the row")
    parsed = parser.parse_args(given)
    if parsed.tiny:
        parsed.config = HERE / "configs" / "gpt2_tiny.json"
    return parsed


def check(given: argparse.Namespace) -> None:
    """Refuse what cannot be measured, before a model is built."""
    command_line.device(
        "large_model",
        given.device,
        otherwise="pass --device cpu with --tiny or a small --config",
    )
    command_line.known("place of a basis", given.basis, get_args(Placement))
    for name in ("batch", "sequence", "vectors", "products", "probes"):
        command_line.count(f"--{name}", getattr(given, name))
    command_line.count("--sketch", given.sketch, least=0)
    if not given.tol > 0:
        raise SystemExit(f"--tol is {given.tol}: pass a number above 0, as 1e-3")
    command_line.folder(given.out)


def config_of(path: Path) -> Config:
    """Read the sizes of a model, or say what is wrong with the file."""
    try:
        return Config.read(path)
    except OSError as error:
        reason = error.strerror or str(error)
    except KeyError as error:
        reason = f"{error} is missing"
    except (TypeError, ValueError) as error:
        reason = str(error)
    raise SystemExit(
        f"{str(path)!r} is no config of GPT-2 ({reason}): pass a JSON file such as "
        "bench/configs/gpt2_1300m.json"
    )


def tokens(config: Config, asked: argparse.Namespace) -> tuple[Tensor, Tensor]:
    """Return a batch of random ids and those that follow them."""
    length = min(asked.sequence, config.n_positions)
    generator = torch.Generator().manual_seed(asked.seed)
    shape = asked.batch, length + 1
    ids = torch.randint(config.vocab_size, shape, generator=generator)
    return ids[:, :-1].to(asked.device), ids[:, 1:].to(asked.device)


def timed(device: str, work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Return what a measurement finds, its seconds and its peak memory in GiB.

    On a GPU the peak is of all that was allocated there; on a processor, of the
    process, with the model and torch itself.
    """
    cuda = device.startswith("cuda")
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    forget_peak()
    start, worked = time.perf_counter(), time.process_time()
    result = work()
    if cuda:
        torch.cuda.synchronize()
    spent = {
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - worked,
        "host_peak_gib": peak_mib() / 1024,
    }
    if cuda:
        spent["device_peak_gib"] = torch.cuda.max_memory_allocated() / GIB
    return result, spent


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """Build, forecast, measure; return the row."""
    config = config_of(asked.config)
    model = build(config, device=asked.device, seed=asked.seed)
    ids, targets = tokens(config, asked)
    given = {"loss": next_token_loss, "norm_mode": "eval", "seed": asked.seed}
    with Hessian(model, (ids, targets), **given) as operator:
        kept = {"k": 1, "ends": "largest", "vectors": asked.vectors}
        forecast = memory_forecast(operator, **kept)
        print(forecast, flush=True)
        product = _one_product(operator, asked)
        print(f"one product: {product}", flush=True)
        row = _row(asked, config, operator, ids, forecast, product)
        for name, work in (
            ("largest_eigenvalue", lambda: _largest(operator, asked, forecast.basis)),
            ("trace", lambda: _trace(operator, asked)),
        ):
            row[name] = work()
            print(row[name], flush=True)
            written(row, asked)  # so that what comes next takes nothing away
    return row


def _row(
    asked: argparse.Namespace,
    config: Config,
    operator: Hessian,
    ids: Tensor,
    forecast: Any,
    product: dict[str, float],
) -> dict[str, Any]:
    return {
        "model": asked.config.stem,
        "parameters": operator.shape[1],
        "config": asdict(config),
        "sequences": asked.batch,
        "tokens": ids.shape[1],
        "dtype": str(operator.torch_dtype).removeprefix("torch."),
        "seed": asked.seed,
        "device": _named(asked.device),
        "threads": torch.get_num_threads(),
        "forecast": {**asdict(forecast), "sentence": str(forecast)},
        "product": product,
        "versions": versions(),
    }


def written(row: dict[str, Any], asked: argparse.Namespace) -> Path:
    """Write what is known of a row, and return where."""
    asked.out.mkdir(parents=True, exist_ok=True)
    place = asked.out / f"{row['model']}_{asked.device.partition(':')[0]}.json"
    place.write_text(json.dumps(_rounded(row), indent=2, ensure_ascii=False) + "\n")
    return place


def _one_product(operator: Hessian, asked: argparse.Namespace) -> dict[str, float]:
    """Return what a product takes whose graph is there already."""
    vector = torch.ones(
        operator.shape[1], dtype=operator.torch_dtype, device=operator.device
    )
    operator.matvec(vector)
    return timed(asked.device, lambda: operator.matvec(vector))[1]


def _largest(
    operator: Hessian, asked: argparse.Namespace, basis_bytes: int
) -> dict[str, Any]:
    reading, spent = timed(
        asked.device,
        lambda: extreme_eigenvalues(
            operator,
            k=1,
            ends="largest",
            tol=asked.tol,
            max_matvecs=asked.products,
            seed=asked.seed,
            method="products",
            basis_bytes=basis_bytes,
            basis=asked.basis,
        ),
    )
    return {
        "value": float(reading.eigenvalues[0]),
        "residual": float(reading.residuals[0]),
        "error": float(reading.errors[0]),
        "sharp_error": float(reading.sharp_errors[0]),
        "graph_error": reading.graph_error,
        **_how(reading),
        **spent,
    }


def _trace(operator: Hessian, asked: argparse.Namespace) -> dict[str, Any]:
    reading, spent = timed(
        asked.device,
        lambda: trace(
            operator,
            max_matvecs=asked.probes,
            seed=asked.seed,
            method="products",
            basis_bytes=asked.sketch
            * operator.shape[1]
            * operator.torch_dtype.itemsize,
            basis=asked.basis,
        ),
    )
    return {
        "value": reading.trace,
        "error": float(reading.trace_error),
        "low": float(reading.trace_low),
        "high": float(reading.trace_high),
        "level": reading.level,
        **_how(reading),
        **spent,
    }


def _how(reading: Any) -> dict[str, Any]:
    return {
        "status": reading.status.value,
        "method": reading.method,
        "passes": reading.cost.passes,
    }


def _named(device: str) -> str:
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"cpu, {platform.machine()}"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return float(f"{value:.6g}") if isinstance(value, float) else value


def main(given: Sequence[str] | None = None) -> Path:
    """Measure what the command line asks for, and write the row."""
    asked = options(given)
    check(asked)
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        place = written(measure(asked), asked)
    except TheodoliteError as error:
        raise SystemExit(str(error)) from error
    print(place)
    return place


if __name__ == "__main__":
    main()
