"""Print what the site is made with, as ``pyproject.toml`` says: its extra ``docs``."""

import tomllib

from handbook.settings import HERE

if __name__ == "__main__":
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    print(*project["optional-dependencies"]["docs"])
