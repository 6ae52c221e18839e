"""What pages for a browser share: how numbers are written, small scripts."""
