"""Run the cells of ``work`` as a process of its own: root, log, jobs, longest, last."""

import sys

from tests.runs.work import CELLS, Logged, spec
from theodolite.runs import RunFolder, execute

if __name__ == "__main__":
    root, log, jobs, longest, last = sys.argv[1:]
    folder = RunFolder.create(root, spec(width=8))
    done = execute(
        folder, CELLS, Logged(log, float(longest), float(last)), jobs=int(jobs)
    )
    print(done.n_done_before, done.n_computed, done.n_elsewhere)
