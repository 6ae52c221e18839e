"""What figures 7 and 8 have in common: networks trained over depths and rates.

``config`` says which, ``search`` trains one at all its rates, ``reading`` turns the
rows of a run into what claims select and test, ``figure`` draws them. None of them
knows of theory.
"""
