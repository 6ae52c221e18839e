"""A survey from end to end: make the subject, plan, measure, find, advise."""
