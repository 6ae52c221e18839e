"""What several studies of the paper use."""
