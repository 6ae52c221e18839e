"""Ours beside the usual ways of computing the same, in one process, as ratios."""
