"""What every room shares: blueprints, readings, rows, claims, seeds, statistics."""

from theodolite.core.arrays import (
    Numbers,
    as_numbers,
    as_real,
    as_whole,
    hold_numbers,
)
from theodolite.core.blueprint import (
    ACTIVATIONS,
    Blueprint,
    Initialisation,
    Position,
    parse_activation,
)
from theodolite.core.claims import (
    Check,
    Claim,
    Kind,
    Number,
    Outcome,
    Verdict,
    holds_if,
    undecided,
)
from theodolite.core.cost import Cost, Stopwatch
from theodolite.core.errors import (
    ConfigError,
    DataError,
    MeasurementError,
    RunError,
    TheodoliteError,
    UnknownNameError,
    unknown_name,
)
from theodolite.core.lazy import attach
from theodolite.core.memory import free_memory
from theodolite.core.reading import Reading
from theodolite.core.rows import Row, Rows, from_lines, plain, strict, to_lines
from theodolite.core.seeds import derive, stream
from theodolite.core.shapes import Samples, Square
from theodolite.core.spectra import Condition, Interpolation, condition_of, index_of
from theodolite.core.statistics import (
    Estimate,
    Interval,
    Line,
    PairedTest,
    bootstrap_interval,
    estimate,
    fit_line,
    paired_test,
)
from theodolite.core.status import NormMode, Status

__all__ = [
    "ACTIVATIONS",
    "Blueprint",
    "Check",
    "Claim",
    "Condition",
    "ConfigError",
    "Cost",
    "DataError",
    "Estimate",
    "Initialisation",
    "Interpolation",
    "Interval",
    "Kind",
    "Line",
    "MeasurementError",
    "NormMode",
    "Number",
    "Numbers",
    "Outcome",
    "PairedTest",
    "Position",
    "Reading",
    "Row",
    "Rows",
    "RunError",
    "Samples",
    "Square",
    "Status",
    "Stopwatch",
    "TheodoliteError",
    "UnknownNameError",
    "Verdict",
    "as_numbers",
    "as_real",
    "as_whole",
    "attach",
    "bootstrap_interval",
    "condition_of",
    "derive",
    "estimate",
    "fit_line",
    "free_memory",
    "from_lines",
    "hold_numbers",
    "holds_if",
    "index_of",
    "paired_test",
    "parse_activation",
    "plain",
    "stream",
    "strict",
    "to_lines",
    "undecided",
    "unknown_name",
]
