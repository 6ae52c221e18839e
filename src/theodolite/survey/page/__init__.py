"""A survey, a comparison or a watch as one self-contained page."""
