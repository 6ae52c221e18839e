"""Which measures run, in what order, within a budget; progress; what Ctrl-C leaves."""
