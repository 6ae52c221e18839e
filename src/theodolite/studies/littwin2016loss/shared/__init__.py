"""What several studies of the paper use.

``enumeration`` lists all paths of a network and ``recording`` runs one with its gates
recorded; neither knows theory. ``rows`` makes rows and reads numbers off them.
"""
