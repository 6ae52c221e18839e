"""Rules with evidence: rows of a survey → findings."""
