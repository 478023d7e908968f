"""Synthetic pairs for pre-training, with their signals (BLEURT, section 4)."""
