"""The demo: a page that scores a pair, compares two systems, and tells about the checkpoint."""
