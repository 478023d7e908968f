"""Score: pairs of text in, scores out; the `evaluate` module and the embedded checkpoint."""
