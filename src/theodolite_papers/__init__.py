"""Four papers as executable studies, found by theodolite through entry points."""
