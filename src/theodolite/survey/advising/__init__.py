"""What to do about a finding, as code that runs, and trials of it."""
