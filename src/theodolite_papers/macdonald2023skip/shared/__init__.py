"""What several studies of the paper use.

``normalised_stack`` is for the theorem, ``linearised`` and ``spectra``
for section 6, ``image_*`` for the training of original and modified ResNets behind
tables 1 to 3. ``printed_tables`` holds the numbers that the paper prints, ``reads``
what claims of several studies read.
"""
