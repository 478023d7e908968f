"""Experiments: one file for each, one results JSON for each run."""
