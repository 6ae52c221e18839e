"""Run measures in order within an effort, with progress; an abort is reported."""
