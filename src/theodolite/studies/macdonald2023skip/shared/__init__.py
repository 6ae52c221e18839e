"""What several studies of the paper use: networks' spectra, and their training."""
