"""Perturbations: ways to turn a sentence into a synthetic candidate (BLEURT, section 4.1)."""
