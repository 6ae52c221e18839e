"""Networks as other people write them, in many styles."""
