"""A survey from end to end: dress, plan, measure, find, advise."""
