"""Run measures in order within a budget, with progress; Ctrl-C keeps finished ones."""
