"""Compare systems, report the comparison, and attribute a score to words."""
