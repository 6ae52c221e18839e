"""All measures, most useful per second first."""

from collections.abc import Sequence

from theodolite.core import unknown_name

from .block_spectra import JacobianMeasure
from .by_block import BlockCurvatureMeasure
from .contract import Measure
from .curvature import CurvatureMeasure
from .densities import DensityMeasure
from .labels import ClassifierMeasure
from .mapping import MapMeasure
from .norm_statistics import NormsMeasure
from .optimizers import OptimizerMeasure
from .path_lengths import PathsMeasure
from .rates import RatesMeasure
from .signal_by_depth import SignalMeasure
from .tangents import TangentMeasure
from .units import UnitsMeasure

MEASURES: tuple[Measure, ...] = (
    MapMeasure(),
    SignalMeasure(),
    UnitsMeasure(),
    NormsMeasure(),
    OptimizerMeasure(),
    CurvatureMeasure(),
    RatesMeasure(),
    JacobianMeasure(),
    TangentMeasure(),
    PathsMeasure(),
    ClassifierMeasure(),
    BlockCurvatureMeasure(),
    DensityMeasure(),
)


def chosen(names: Sequence[str] | None) -> list[Measure]:
    """Return the measures of these names, in the order of the catalogue; all if None.

    Raises:
        UnknownNameError: No measure has one of the names.
    """
    known = {measure.name: measure for measure in MEASURES}
    for name in names or ():
        if name not in known:
            raise unknown_name("measure", name, known)
    wanted = known if names is None else set(names)
    return [measure for measure in MEASURES if measure.name in wanted]
