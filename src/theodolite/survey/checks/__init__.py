"""First aid: what practitioners check first, before any curvature is measured.

Start at ``first_aid.py``, which runs all checks. ``check.py`` says what a check is;
``seen.py`` holds what checks look at: one traced pass with its gradients
(``trace.py``) and a few training steps, undone after (``trial_steps.py``). The user's
own step is watched by ``step_record.py`` and undone by ``step_state.py``. Each other
file holds checks of one kind.
"""
