"""Survey the authored set-ups and write what was found, one JSON line each.

Usage: python evaluate.py FOLDER OUT.jsonl [--only NAME] [--kind faults|sound]. A line
has the set-up's name, its state (broken, repaired or sound), the findings in order
(rule, severity, title, what it says) and the first advice; it says nothing of whether
they are right. Names already in OUT are left out, so a run can be continued.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from protocol import load

import theodolite


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
    """Return what a survey says of a set-up, as plain values."""
    torch.manual_seed(seed)
    setup = build(seed)
    start = time.process_time()
    try:
        result = theodolite.survey(
            setup.model, setup.batches, loss=setup.loss, optimizer=setup.optimizer,
            progress=False, **settings,
        )  # fmt: skip
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:400]}
    found = [f for f in result.findings if f.severity != "good"]
    return {
        "findings": [
            {"rule": f.rule, "severity": f.severity, "title": f.title, "says": f.says}
            for f in found
        ],
        "advice": result.advice[0].title if result.advice else "",
        "cpu_s": round(time.process_time() - start, 1),
    }


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
    for name, state, area, build in entries(asked.folder):
        kind = "sound" if state == "sound" else "faults"
        if asked.only not in name or asked.kind not in kind or (name, state) in done:
            continue
        row = {"name": name, "state": state, "area": area, **surveyed(build)}
        with out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        worst = [f"{f['severity']}:{f['rule']}" for f in row.get("findings", [])]
        print(name, state, row.get("error", "") or ", ".join(worst), flush=True)


if __name__ == "__main__":
    main()
