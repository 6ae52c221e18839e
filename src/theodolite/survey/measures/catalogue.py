"""All measures, in order of what they tell per second."""

from collections.abc import Sequence

from theodolite.core import unknown_name
from theodolite.survey.measures.block_spectra import JacobianMeasure
from theodolite.survey.measures.by_block import BlockCurvatureMeasure
from theodolite.survey.measures.contract import Measure
from theodolite.survey.measures.curvature import CurvatureMeasure
from theodolite.survey.measures.densities import DensityMeasure
from theodolite.survey.measures.labels import ClassifierMeasure
from theodolite.survey.measures.mapping import MapMeasure
from theodolite.survey.measures.norm_statistics import NormsMeasure
from theodolite.survey.measures.optimisers import OptimiserMeasure
from theodolite.survey.measures.path_lengths import PathsMeasure
from theodolite.survey.measures.rates import RatesMeasure
from theodolite.survey.measures.signal_by_depth import SignalMeasure
from theodolite.survey.measures.tangents import TangentMeasure
from theodolite.survey.measures.units import UnitsMeasure

MEASURES: tuple[Measure, ...] = (
    MapMeasure(),
    SignalMeasure(),
    UnitsMeasure(),
    NormsMeasure(),
    OptimiserMeasure(),
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
        UnknownNameError: There is none of a name.
    """
    known = {measure.name: measure for measure in MEASURES}
    for name in names or ():
        if name not in known:
            raise unknown_name("measure", name, known)
    wanted = known if names is None else set(names)
    return [measure for measure in MEASURES if measure.name in wanted]
