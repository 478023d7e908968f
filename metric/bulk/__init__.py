"""Score files of any size, in windows, resumable."""
