from .errata import write_errata as write_errata
from .page import render as render
from .page import write_report as write_report
