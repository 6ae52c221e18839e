"""The survey's quantities during a training: live, and as a page at the end.

Start at ``context.py``, the watch of a plain loop; ``callbacks`` are the same in
Lightning and Hugging Face trainers. ``quantities`` measure, ``seen`` catches the batch
on its way into the model, ``telling`` collects rows and draws them, ``course`` is the
result.
"""
