"""One file per measure: a model with data and a time limit → rows and cost.

Start at ``contract.py``; ``catalogue.py`` lists the measures, most useful per second
first. A measure forecasts its seconds before it runs and keeps to its time limit.
"""
