"""Publish: cards drawn from measured results, pushes to the Hub."""
