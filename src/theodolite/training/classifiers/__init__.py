"""Many small classifiers trained at once, with records of every sample's output.

Start with ``training``. ``recipe`` holds settings and samples, ``records`` what is
kept, ``layers`` the forward and backward pass of a stack of networks, ``loops`` the
training of a stack and of a single network. Imports ``images``.
"""
