"""The library works when the package of the papers is not there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "theodolite"
CODE = """
import torch
from torch import nn
import theodolite
from theodolite import instruments, studies

assert studies.papers() == []
model = nn.Linear(2, 1)
batch = torch.ones(4, 2), torch.zeros(4, 1)
given = {"loss": nn.MSELoss(), "norm_mode": "eval"}
print(instruments.trace(model, batch, method="dense", **given).trace)
"""


def test_the_library_works_without_the_papers(tmp_path):
    library = tmp_path / "library"
    shutil.copytree(SOURCE, library / "theodolite")
    hidden = "import sys; sys.modules['theodolite_papers'] = None\n"
    environment = os.environ | {"PYTHONPATH": str(library)}

    def run(code):
        return subprocess.run(
            [sys.executable, "-P", "-c", hidden + code],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    measured = run(CODE)
    assert measured.returncode == 0, measured.stderr
    assert float(measured.stdout) > 0
    listed = run("from theodolite.cli import main; main(['list'])")
    assert listed.returncode == 0, listed.stderr
    # One sentence for each of the five papers that the distribution names.
    assert listed.stderr.count("cannot be imported (ModuleNotFoundError") == 5


def test_no_module_of_the_library_names_the_papers():
    for path in SOURCE.rglob("*.py"):
        assert "theodolite_papers" not in path.read_text(), path
