"""The example notebooks run, and show what they say.

``python -m tests.test_notebooks`` runs them and writes their outputs again.
"""

import ast
import io
import json
import tempfile
from base64 import b64encode
from contextlib import chdir, redirect_stdout
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"
LARGEST = 100_000
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def read(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))


@cache
def executed(name):
    """Run a notebook; return its variables and the outputs of each code cell."""
    space, outputs = {"__name__": "__main__"}, []
    with tempfile.TemporaryDirectory() as place, chdir(place):
        for cell in read(name)["cells"]:
            if cell["cell_type"] == "code":
                outputs.append(outputs_of("".join(cell["source"]), space))
    return space, outputs


def outputs_of(source, space):
    """Run a cell; return what it prints and what its last line shows."""
    body, last, said = ast.parse(source).body, None, io.StringIO()
    shown = body.pop() if isinstance(body[-1], ast.Expr) else None
    with redirect_stdout(said):
        exec(compile(ast.Module(body, []), "cell", "exec"), space)
        if shown is not None:
            last = eval(compile(ast.Expression(shown.value), "cell", "eval"), space)
    text = said.getvalue()
    outputs = (
        [{"name": "stdout", "output_type": "stream", "text": text}] if text else []
    )
    if last is not None:
        bundle = {"text/plain": repr(last)}
        if hasattr(last, "_repr_html_"):
            bundle["text/html"] = last._repr_html_()
        if hasattr(last, "_repr_png_"):
            bundle["image/png"] = b64encode(last._repr_png_()).decode()
        what = {"output_type": "execute_result", "execution_count": None}
        outputs.append({**what, "data": bundle, "metadata": {}})
    return outputs


def kinds(outputs):
    return [sorted(one.get("data", {"stream": 0})) for one in outputs]


@pytest.mark.parametrize("name", NAMES)
def test_its_outputs_are_of_this_code_and_small(name):
    cells = [cell for cell in read(name)["cells"] if cell["cell_type"] == "code"]
    for cell, outputs in zip(cells, executed(name)[1], strict=True):
        assert kinds(cell["outputs"]) == kinds(outputs)
        assert len(json.dumps(cell["outputs"])) < LARGEST


def test_the_broken_network_trains_after_the_advice():
    space, outputs = executed("broken_network")
    assert space["result"].findings[0].rule == "gradient-vanishes"
    assert space["before"] > 2.2
    assert space["after"] < 0.2
    assert "parameters (all trained)" in outputs[2][0]["data"]["text/html"]


def test_curvature_along_training_crosses_the_edge_and_shows_pictures():
    space, outputs = executed("curvature_along_training")
    values = space["rows"].values()
    assert values[1:4].min() > 2 > max(values[0], *values[4:])  # as its text says
    for cell in (1, 3):
        assert "data:image/png;base64," in outputs[cell][0]["data"]["text/html"]


def test_the_claims_hold_and_both_roads_meet():
    space, outputs = executed("claim_of_a_paper")
    for predicted, measured, error in space["pairs"]:
        assert abs(predicted - measured) <= error + 1e-9 * predicted
    claims = space["done"].summary.claims
    assert {one.verdict for one in claims} == {"HOLDS"}
    assert repr(space["done"]).count("HOLDS") == len(claims)
    assert outputs[1][0]["data"]["text/html"].count("HOLDS") >= len(claims)


def write():
    """Write the outputs of all notebooks."""
    for name in NAMES:
        content, outputs = read(name), executed(name)[1]
        code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
        for number, (cell, own) in enumerate(zip(code, outputs, strict=True), start=1):
            cell["outputs"], cell["execution_count"] = own, number
            for one in own:
                if "execution_count" in one:
                    one["execution_count"] = number
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        (FOLDER / f"{name}.ipynb").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
