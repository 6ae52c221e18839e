"""The instruments room."""
