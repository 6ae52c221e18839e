"""Points told apart by their distance, and how often each was met."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree


class Distinct:
    """A growing set of points, no two of them nearer than a distance.

    Attributes:
        points: Shape (found, dimension).
        hits: How often each was met.
    """

    def __init__(self, dimension: int, apart: float) -> None:
        self.points = np.empty((0, dimension))
        self.hits = np.zeros(0, dtype=np.int64)
        self._apart = apart

    def add(self, arrivals: np.ndarray) -> None:
        """Add points, each to those that it is near to or as a new one."""
        if not len(arrivals):
            return
        every = np.concatenate([self.points, arrivals])
        pairs = KDTree(every).query_pairs(self._apart, output_type="ndarray")
        links = coo_array((np.ones(len(pairs)), pairs.T), shape=(len(every),) * 2)
        count, group = connected_components(links, directed=False)
        # The first of each group stands for it, so that known points keep their place.
        first = np.full(count, len(every))
        np.minimum.at(first, group, np.arange(len(every)))
        order = np.argsort(first)
        met = np.zeros(count, dtype=np.int64)
        np.add.at(met, group[len(self.points) :], 1)
        np.add.at(met, group[: len(self.points)], self.hits)
        self.points, self.hits = every[first[order]], met[order]
