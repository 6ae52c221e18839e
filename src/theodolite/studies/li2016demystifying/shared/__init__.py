"""What several studies of the paper use: whitened digits, measured Hessians, rows.

Nothing here imports a study. ``problems`` has random data and rows, ``hessians``
measures, ``whitened`` is the data of appendix B, ``reads`` what claims read; none knows
of theory.
"""
