"""``python -m theodolite``."""

import sys

if not sys.flags.safe_path:
    # Python has put the working directory first, whose files the user has not approved.
    del sys.path[0]

from theodolite.cli import main

main()
