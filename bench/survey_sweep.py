"""Survey many architectures of others: understood, refused with a sentence, crashed.

    python bench/survey_sweep.py OUT --device cuda --limit-s 400

Takes one or two small networks of every family that timm has, each with made-up images
of the size that its config names, and a ResNet-50 with time to spare. Rows go to
OUT/survey_sweep.jsonl as they come, the counts to OUT/survey_sweep.json. A network is
*understood* when its map and its loss are measured, *refused* when the survey ends in a
sentence of ours, and *crashed* otherwise; measures that failed are counted apart.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    # Started by its path, modules beside it would hide others of their names.
    sys.path[0] = str(Path(__file__).parents[1] / "src")

import torch

import theodolite
from theodolite.core import TheodoliteError
from theodolite.survey import make_subject

# What small variants of a family are called, the smallest first.
SMALL = ("atto", "femto", "pico", "nano", "xxs", "xx_small", "tiny", "_t_", "mini",
         "x_small", "_xs", "b0", "_s0", "050", "_s_", "small", "18", "_xt", "26", "_s.",
         "lite", "34", "101", "50")  # fmt: skip
LARGE = ("giant", "huge", "large", "gigantic", "xlarge", "enormous", "so400m",
         "448", "512", "384", "_in21", "_in22", "7b", "1b", "2b", "_xl", "_xxl",
         "152", "200", "clip")  # fmt: skip
LARGEST_SIDE = 256
MOST_PARAMETERS = 90_000_000
# Networks that the sweep is to reach, with some to spare.
ENOUGH = 70


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--limit-s", type=float, default=400.0)
    parser.add_argument("--most", type=int, default=110, help="networks at most")
    parser.add_argument("--each-s", type=float, default=15.0, help="seconds a network")
    parser.add_argument("--effort", type=float, default=100.0, help="of each survey")
    parser.add_argument(
        "--resnet50-s", type=float, default=60.0, help="0 leaves it out"
    )
    parser.add_argument("--processes", type=int, default=1, help="at once, a part each")
    parser.add_argument("--part", type=int, default=0, help="which of them this is")
    parser.add_argument("--shared", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    start, rows = time.perf_counter(), []
    if given.processes > 1 and not given.shared:
        record = in_parts
    else:
        warm_up(given.device)
        record = sweep
    with (given.out / "survey_sweep.jsonl").open("w") as file:
        for row in record(given, start):
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(told(row), flush=True)
    record = summary(given, rows, time.perf_counter() - start)
    text = json.dumps(record, indent=1)
    (given.out / "survey_sweep.json").write_text(text + "\n")
    print(text)
    return 1 if record["crashed"] else 0


def in_parts(given, start):
    """Yield the ResNet-50's row, measured alone, then those of several processes."""
    if given.resnet50_s:
        warm_up(given.device)
        yield surveyed("resnet50", resnet50, given, given.effort, given.resnet50_s)
    left = given.limit_s - (time.perf_counter() - start)
    folders = [given.out / f"part_{part}" for part in range(given.processes)]
    own = [sys.executable, __file__, "--shared", "--resnet50-s", "0"]
    for name in ("device", "source", "most", "processes"):
        own += [f"--{name}", str(getattr(given, name))]
    own += ["--each-s", str(given.each_s), "--effort", str(given.effort)]
    own += ["--limit-s", str(left)]
    started = []
    for part, folder in enumerate(folders):
        folder.mkdir(exist_ok=True)
        with (folder / "log").open("w") as log:
            command = [*own, "--part", str(part), str(folder)]
            started.append(subprocess.Popen(command, stdout=log, stderr=log))
    # A network that hangs past its alarm is lost with its part, and no more.
    end = time.perf_counter() + left + 2 * given.each_s
    for one in started:
        try:
            one.wait(timeout=max(1.0, end - time.perf_counter()))
        except subprocess.TimeoutExpired:
            one.kill()
    for folder in folders:
        if (file := folder / "survey_sweep.jsonl").exists():
            yield from map(json.loads, file.read_text().splitlines())


def warm_up(device):
    """Load whatever loads on first use, so that no network pays for it."""
    layers = torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten()
    net = torch.nn.Sequential(*layers).to(device)
    theodolite.survey(make_subject(net, shape=(3, 8, 8), batch_size=4), progress=False)


def sweep(given, start):
    """Yield a row a network, until the time is over."""
    if given.resnet50_s:
        yield surveyed("resnet50", resnet50, given, given.effort, given.resnet50_s)
    begin, left = time.perf_counter(), given.limit_s - (time.perf_counter() - start)
    names = chosen(given)[given.part :: given.processes]
    for place, name in enumerate(names):
        spent = time.perf_counter() - begin
        if spent > left:
            return
        # Behind the pace that reaches enough networks, each gets less.
        late = spent / left > place * given.processes / ENOUGH
        effort = given.effort / (4 if late else 1)
        yield surveyed(name, partial(made_by_timm, name), given, effort, given.each_s)


def chosen(given):
    """Return names of networks: two small ones a family, the first of each first."""
    import timm

    firsts, seconds = [], []
    for module in timm.list_modules():
        names = sorted(timm.list_models(module=module), key=rank)
        firsts += names[:1]
        stem = names[0].split("_")[0] if names else ""
        others = [name for name in names if not name.startswith(stem)]
        seconds += (others or names[1:])[:1]
    return list(dict.fromkeys([*firsts, *seconds]))[: given.most]


def rank(name):
    """Order names by how small the network is likely to be."""
    small = min((i for i, part in enumerate(SMALL) if part in name), default=99)
    return (any(part in name for part in LARGE), small, len(name), name)


def made_by_timm(name):
    import timm

    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False)
    if (n := sum(p.numel() for p in model.parameters())) > MOST_PARAMETERS:
        raise Passed(f"{n:,} parameters")
    settings = getattr(model, "default_cfg", None) or {}
    size = settings.get("input_size", (3, 224, 224))
    if not settings.get("fixed_input_size"):
        size = (size[0], *(min(side, LARGEST_SIDE) for side in size[1:]))
    return model, tuple(size), 8


def resnet50():
    import timm

    return timm.create_model("resnet50", pretrained=False), (3, 224, 224), 32


class Passed(Exception):
    """A network that was not surveyed, and why."""


def surveyed(name, make, given, effort, limit_s):
    """Survey one network within a time; whatever happens is a row."""
    row = {"name": name, "outcome": "crashed", "reason": ""}
    begin = time.perf_counter()
    try:
        with within(limit_s):
            model, shape, samples = built(make)
            model = model.to(given.device)
            before = state_of(model)
            subject = make_subject(
                model, shape=shape or None, batch_size=samples, n_batches=2, title=name
            )
            ready = time.perf_counter()
            result = theodolite.survey(subject, effort=effort, progress=False)
            row |= facts(result, model, before)
            row["survey_s"] = round(time.perf_counter() - ready, 2)
    except TheodoliteError as error:
        row |= {"outcome": "refused", "reason": str(error)}
    except Passed as passed:
        row |= {"outcome": "passed over", "reason": str(passed)}
    except TimeoutError:
        row |= {"outcome": "out of time", "reason": f"above {limit_s:g} s"}
    except KeyboardInterrupt:
        row |= {"outcome": "out of time", "reason": f"above {limit_s:g} s, unhandled"}
    except Exception as error:
        row["reason"] = f"{type(error).__name__}: {str(error)[:300]}"
        row["trace"] = traceback.format_exc()[-1500:]
    row["wall_s"] = round(time.perf_counter() - begin, 2)
    if torch.cuda.is_available():
        row["peak_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    return row


def built(make):
    """Make a network; one that its own library cannot make is none of the survey's."""
    try:
        return make()
    except (Passed, KeyboardInterrupt, TimeoutError):
        raise
    except Exception as error:
        raise Passed(
            f"not built: {type(error).__name__}: {str(error)[:200]}"
        ) from error


def facts(result, model, before):
    """Return what a survey made of a network, and whether it was left as found."""
    status = {one.measure: one.status for one in result.measured}
    reasons = {
        one.measure: one.reason[:200]
        for one in result.measured
        if one.status in ("failed", "refused", "interrupted")
    }
    good = ("done", "partial")
    read = [status.get("map"), status.get("signal")]
    if all(one in good for one in read):
        outcome = "understood"
    else:
        late = "failed" not in read and {"skipped", "interrupted"} & set(read)
        outcome = "out of time" if late else "not understood"
    return {
        "outcome": outcome,
        "status": status,
        "reasons": reasons,
        "blocks": len(result.blocks),
        "residual": sum(one.kind == "residual" for one in result.blocks),
        "parameters": result.n_parameters,
        "unsupported": list(result.unsupported),
        "findings": [one.rule for one in result.findings],
        "as_found": same_state(before, state_of(model)),
    }


def state_of(model):
    kept = {name: one.detach().clone() for name, one in model.state_dict().items()}
    flags = [one.training for one in model.modules()]
    return kept, flags, [p.requires_grad for p in model.parameters()]


def same_state(one, other):
    values = all(torch.equal(one[0][k].cpu(), other[0][k].cpu()) for k in one[0])
    return values and one[1:] == other[1:]


@contextmanager
def within(seconds):
    """Interrupt as Ctrl-C does when time is over, and again if that is not heard."""
    pressed = []

    def ring(number, frame):
        pressed.append(number)
        if len(pressed) > 1:
            raise TimeoutError
        signal.alarm(8)
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(max(1, int(seconds)))
    try:
        yield
    finally:
        signal.alarm(0)


def told(row):
    more = row["reason"] or f"{row.get('blocks', 0)} blocks"
    failed = [m for m, s in row.get("status", {}).items() if s == "failed"]
    marks = f" FAILED {','.join(failed)}" * bool(failed)
    marks += " CHANGED" * (row.get("as_found") is False)
    return f"{row['outcome']:<14} {row['wall_s']:>6.1f} s {row['name']}: {more}{marks}"


def summary(given, rows, seconds):
    """Return the counts, and the time of the ResNet-50."""
    outcomes = Counter(row["outcome"] for row in rows)
    failed = Counter(
        measure
        for row in rows
        for measure, status in row.get("status", {}).items()
        if status == "failed"
    )
    large = next((row for row in rows if row["name"] == "resnet50"), {})
    return {
        "networks": len(rows),
        **{k: outcomes[k] for k in ("understood", "refused", "crashed")},
        "outcomes": dict(outcomes),
        "failed_measures": dict(failed),
        "changed": [r["name"] for r in rows if r.get("as_found") is False],
        "resnet50_s": large.get("survey_s"),
        "seconds": round(seconds, 1),
        "device": torch.cuda.get_device_name() if given.device == "cuda" else "cpu",
        "torch": torch.__version__,
        "theodolite": theodolite.__version__,
        "python": sys.version.split()[0],
    }


if __name__ == "__main__":
    sys.exit(main())
