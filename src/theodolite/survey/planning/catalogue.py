"""All measures, most useful per second first."""

from collections.abc import Sequence

from theodolite.core import unknown_name

from ..checks.first_aid import FirstAid
from ..measures.block_spectra import JacobianMeasure
from ..measures.by_block import BlockCurvatureMeasure
from ..measures.contract import Measure
from ..measures.curvature import CurvatureMeasure
from ..measures.densities import DensityMeasure
from ..measures.labels import ClassifierMeasure
from ..measures.mapping import MapMeasure
from ..measures.norm_statistics import NormsMeasure
from ..measures.optimizers import OptimizerMeasure
from ..measures.path_lengths import PathsMeasure
from ..measures.rates import RatesMeasure
from ..measures.signal_by_depth import SignalMeasure
from ..measures.tangents import TangentMeasure
from ..measures.units import UnitsMeasure

MEASURES: tuple[Measure, ...] = (
    FirstAid(),
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
