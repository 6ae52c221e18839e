"""What several studies of the paper use.

``enumeration`` lists all paths of a network, ``recording`` runs one with its gates
recorded, ``coins`` visits all states of gates, ``exact_weights`` computes Eq 16 in
whole numbers; none of them knows theory. ``rows`` makes rows and reads numbers off
them.
"""
