"""When and what to measure while something trains, whoever trains it.

Schedules say when, probes what; a board calls them and keeps their rows. A watcher
does so in somebody else's loop, and the callbacks in somebody else's library.

Start with ``schedules``, then ``probes``. Touches core, instruments and runs; no
other room of training.
"""
