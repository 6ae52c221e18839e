"""Studies of MacDonald et al. (2023)."""
