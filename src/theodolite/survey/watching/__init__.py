"""The survey's numbers and rules during a training, and alerts.

Start at ``plain_loop.py``; ``callbacks`` are the same in Lightning and Hugging Face
trainers. The engine is ``training.Watcher``, attached to model and optimiser.
``watched`` measures, ``alerts`` holds the rules along a run, ``course`` is the
result.
"""
