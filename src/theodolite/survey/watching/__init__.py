"""The survey's numbers and rules during a training: alerts, live, and a page.

Start at ``plain_loop.py``; ``callbacks`` are the same in Lightning and Hugging Face
trainers. The engine is ``training.Watcher``, attached to model and optimiser.
``survey_probe`` measures, ``alerts`` holds the rules along a run, ``live_table``
collects rows and draws them, ``course`` is the result.
"""
