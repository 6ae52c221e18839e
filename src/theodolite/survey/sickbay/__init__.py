"""Sick networks and their healthy twins, on which every finding is tried."""
