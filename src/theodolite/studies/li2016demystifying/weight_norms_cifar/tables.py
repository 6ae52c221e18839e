"""What figure 2 shows, and norms at the start beside their prediction."""

from theodolite.core import Roads, Row, Rows, points
from theodolite.studies.li2016demystifying.shared.cifar_judging import along
from theodolite.studies.li2016demystifying.shared.cifar_tables import beside

# The paper's schedule as fractions of training.
FALLS = (80 / 200, 121 / 200)


def table(roads: Roads) -> Rows:
    """Return means over networks by depth and epoch, and where the rate falls."""
    norms = points(along(roads.measured), ("depth", "epoch"))
    last = max(norms.column("epoch"), default=0)
    falls = [{"quantity": "fall", "epoch": fall * last} for fall in FALLS]
    return norms + falls


def compare(roads: Roads) -> list[Row]:
    """Norms of He's initialisation beside those at the start."""
    return beside(roads, "norm", "mean norm at the start", epoch=0)
