"""Descriptions of architectures, which networks build and theory predicts.

Start reading at ``description``, which holds the abstract ``Blueprint``; each of its
final kinds has a file. Nothing here knows how a kind is built or predicted.
"""
