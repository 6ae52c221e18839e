"""One file a measure: a dressed model and an allowance → rows, and what they cost.

Start at ``contract.py``; ``catalogue.py`` lists them in order of what they tell per
second. A measure forecasts its seconds before it runs and keeps to its allowance.
"""
