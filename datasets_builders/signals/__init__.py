"""Signals: what pre-training learns to predict of a pair (BLEURT, section 4.2)."""
