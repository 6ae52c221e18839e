"""What several studies of the paper use: whitened digits, measured Hessians, rows.

Nothing here imports a study. ``problems`` has random data and rows, ``hessians``
measures, ``whitened`` is the data of appendix B, ``least_squares`` fits linear maps to
it, ``reads`` is what claims read, ``final_losses`` what figures 7 and 8 have in common;
none of them knows of theory.
"""
