"""What several studies of the paper use.

Normalised stacks and their descent for the theorem, spectra of two-block networks and
their training for section 6. ``image_*`` is the training of original and modified
ResNets behind tables 1 to 3: ``image_config`` the settings, ``image_training`` the
work, ``image_rows`` which readings count, ``image_claims`` what is asked of each table.
``printed_*`` holds the numbers that the paper prints.
"""
