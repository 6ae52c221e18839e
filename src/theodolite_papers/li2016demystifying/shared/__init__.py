"""What several studies of the paper use; nothing here imports a study or theory.

``problems`` has random data and rows, ``whitened`` the data of appendix B, ``hessians``
measures, ``optima`` fits linear maps, ``reads`` has tests and ``figure`` drawings that
studies share. ``cifar_*`` trains the networks of figures 2 and 9, ``final_losses``
those of figures 7 and 8.
"""
