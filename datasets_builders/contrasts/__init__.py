"""Synthetic contrast data: pairs whose answer is known by construction."""
