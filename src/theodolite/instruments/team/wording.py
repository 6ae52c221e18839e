"""What is said of errors that end somebody's work."""


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, or else its name."""
    first = (str(error).strip().splitlines() or [""])[0]
    return first.rstrip(". ") or type(error).__name__
