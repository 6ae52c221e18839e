"""A watcher as a callback of Lightning and of Transformers.

Each module imports its library on first use. Touches the probes only.
"""
