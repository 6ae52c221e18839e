"""The networks room."""
