"""The scripts of ``examples/``, run by the build, and what they say."""

import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from handbook.settings import HERE, Nav

EXAMPLES = HERE.parent / "examples"


def write(pages: Path, nav: Nav) -> None:
    """Write a page of all scripts; each one runs."""
    parts = ["# Scripts\n", "Scripts of `examples/`; cells start at `# %%`.\n"]
    for path in sorted(EXAMPLES.glob("*.py")):
        parts.append(_section(path, pages / "tasks"))
    (pages / "tasks.md").write_text("\n".join(parts))
    nav.add("Measure one", "Scripts", "tasks.md")


def _section(path: Path, pictures: Path) -> str:
    text = path.read_text()
    docstring = ast.get_docstring(ast.parse(text)) or path.stem
    code = text.split('"""', 2)[2].strip()
    with tempfile.TemporaryDirectory() as place:
        said = subprocess.run(
            [sys.executable, str(path)],
            cwd=place,
            env=os.environ | {"MPLBACKEND": "agg"},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        shown = []
        for drawn in sorted(Path(place).glob("*.png")):
            pictures.mkdir(exist_ok=True)
            (pictures / drawn.name).write_bytes(drawn.read_bytes())
            shown.append(f"![{drawn.stem.replace('_', ' ')}](tasks/{drawn.name})\n")
    heading, _, rest = docstring.partition("\n")
    return "\n".join(
        [
            f"## {heading.rstrip('.')}\n",
            f"{rest.strip()}\n",
            f'```python title="{path.name}"\n{code}\n```\n',
            f"```text\n{said.strip()}\n```\n",
            *shown,
        ]
    )
