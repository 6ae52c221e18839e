"""The same quantities along somebody's training."""
