from .errata import errata_page as errata_page
from .errata import write_errata as write_errata
from .finished_runs import JudgedRun as JudgedRun
from .finished_runs import judged_runs as judged_runs
from .page import render as render
from .page import write_report as write_report
