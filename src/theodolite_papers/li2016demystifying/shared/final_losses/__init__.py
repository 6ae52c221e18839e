"""What figures 7 and 8 have in common: networks trained over depths and rates.

``config`` says which, ``search`` trains one at all its rates, ``training`` does a cell.
``reading`` turns the rows of a run into what claims select, ``orders`` holds the tests
that both figures ask for, ``tables`` and ``figure`` draw. No theory is known here.
"""
