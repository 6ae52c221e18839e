"""What several studies of the paper use.

``image_*`` is the training of original and modified ResNets behind tables 1 to 3:
``image_config`` the settings, ``image_training`` the work, ``image_rows`` which
readings count, ``image_claims`` what is asked of each table. ``printed_*`` holds the
numbers that the paper prints.
"""
