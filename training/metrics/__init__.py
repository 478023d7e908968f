"""Metrics: score texts with any metric, and measure how well it agrees with people."""
