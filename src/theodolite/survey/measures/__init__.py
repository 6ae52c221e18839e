"""One file per measure: a model with data and a time limit → rows and cost.

Start at ``contract.py``; ``catalogue.py`` lists them in order of what they tell per
second. A measure forecasts its seconds before it runs and keeps to its allowance.
"""
