"""Survey the authored set-ups and write what was found, one JSON line each.

Usage: python evaluate.py FOLDER OUT.jsonl [--only NAME,NAME] [--kind faults|sound]. A
line has the set-up's name, its state (broken, repaired or sound), the findings in order
(rule, severity, title, what it says) and the first advice; it says nothing of whether
the findings are right. Of broken set-ups it also has what the first advice does: it is
applied to fresh builds, which are trained as the author does, from three seeds. Names
already in OUT are left out, so a run can be continued.
"""

import argparse
import json
import math
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from protocol import load, train

import theodolite
from theodolite.survey.advice.applying import Treated, apply_advice, runs
from theodolite.survey.advice.samples import Pool

SEEDS = (0, 1, 2)
# Share of the way from the broken to the repaired score that counts as help, and the
# share of it lost that counts as harm.
HELPS, HARMS = 0.5, 0.1


def entries(folder):
    """Yield (name, state, area, build) of every set-up below a folder."""
    for file in sorted(Path(folder).rglob("*.py")):
        if not file.stem.startswith(("faults", "sound")):
            continue
        sys.modules.pop("shared", None)  # each author has one
        module = load(str(file))
        for fault in getattr(module, "FAULTS", []):
            yield fault.name, "broken", fault.area, fault.broken
            yield fault.name, "repaired", fault.area, fault.repaired
        for sound in getattr(module, "SOUND", []):
            yield sound.name, "sound", sound.family, sound.make


def surveyed(build, seed=0, **settings):
    """Return what a survey says of a set-up as plain values, and its first advice."""
    torch.manual_seed(seed)
    setup = build(seed)
    start = time.process_time()
    step = partial(setup.step, setup) if setup.step else None
    try:
        result = theodolite.survey(
            setup.model, setup.batches, loss=setup.loss, optimizer=setup.optimizer,
            step=step, progress=False, **settings,
        )  # fmt: skip
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:400]}, ()
    found = [f for f in result.findings if f.severity != "good"]
    row = {
        "findings": [
            {"rule": f.rule, "severity": f.severity, "title": f.title, "says": f.says,
             "symptoms": [s.rule for s in f.symptoms]}
            for f in found
        ],
        "advice": result.advice[0].title if result.advice else "",
        "cpu_s": round(time.process_time() - start, 1),
    }  # fmt: skip
    return row, result.advice[:1]


def scores(build, advice=()):
    """Return the scores after training from each seed, with advice applied before."""
    after = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        setup = build(seed)
        try:
            for each in advice:
                pool = Pool(setup.batches)
                step = partial(setup.step, setup) if setup.step else None
                given = Treated(
                    model=setup.model,
                    optimizer=setup.optimizer,
                    step=step,
                    loss=setup.loss,
                )
                treated = apply_advice(each, given, pool.some_inputs())
                if step is not None and treated.step is not step:
                    setup.step = lambda setup, batch, own=treated.step: own(batch)
                setup.model, setup.optimizer = treated.model, treated.optimizer
                setup.loss = treated.loss
                if treated.batch_size:
                    draws = pool.draws(seed, treated.batch_size)
                    setup.batches = [next(draws) for _ in range(len(pool.batches))]
            after.append(train(setup)["after"])
        except Exception:  # advice that does not run is no help
            after.append(math.nan)
    return after


def first_advice(advice, broken, repaired):
    """Return what the first advice does: its scores, the share closed, a verdict."""
    row = {"broken": scores(broken), "repaired": scores(repaired)}
    if not advice or not runs(advice[0]):
        return {**row, "verdict": "none" if not advice else "instruction"}
    row["advised"] = scores(broken, advice)
    gaps = [b - a for a, b in zip(row["broken"], row["repaired"], strict=True)]
    gains = [b - a for a, b in zip(row["broken"], row["advised"], strict=True)]
    closed = sum(gains) / max(abs(sum(gaps)), 1e-9)
    verdict = "helps" if closed >= HELPS else "no help"
    if not closed > -HARMS:  # also where it is not finite
        verdict = "harms"
    return {**row, "closed": closed, "verdict": verdict}


def main():
    """Survey what is not in the file yet."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--only", default="")
    parser.add_argument("--kind", default="")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    out = Path(asked.out)
    lines = out.read_text().splitlines() if out.exists() else []
    done = {(row["name"], row["state"]) for row in map(json.loads, lines)}
    twins = {n: build for n, state, _, build in entries(asked.folder)
             if state == "repaired"}  # fmt: skip
    for name, state, area, build in entries(asked.folder):
        kind = "sound" if state == "sound" else "faults"
        wanted = any(each in name for each in asked.only.split(","))
        if not wanted or asked.kind not in kind or (name, state) in done:
            continue
        found, advice = surveyed(build)
        row = {"name": name, "state": state, "area": area, **found}
        if state == "broken":
            row["first_advice"] = first_advice(advice, build, twins[name])
        with out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        worst = [f"{f['severity']}:{f['rule']}" for f in row.get("findings", [])]
        said = row.get("first_advice", {}).get("verdict", "")
        print(name, state, row.get("error", "") or ", ".join(worst), said, flush=True)


if __name__ == "__main__":
    main()
