"""What is surveyed: a model with batches and a loss, from a SPEC or a live module."""
