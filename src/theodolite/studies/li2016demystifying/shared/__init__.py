"""What several studies of the paper use: whitened digits, measured Hessians, rows.

Nothing here imports a study. ``hessians`` measures, ``whitened`` is the data of
appendix B; neither knows of theory.
"""
