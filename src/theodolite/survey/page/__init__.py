"""What a person looks at: surveys, comparisons and watched trainings as one HTML file.

Start at ``sheets`` (survey and comparison) and ``course`` (training), which lay out
what ``templates/`` shows; ``cross_section`` and ``chart`` draw, ``words`` names
quantities, ``embedded`` holds the numbers to download, ``writing`` makes the file,
``plotting`` the figure of a survey. Imports every other inner room; ``Survey.to_html``
and its kin reach up here when they are called.
"""
