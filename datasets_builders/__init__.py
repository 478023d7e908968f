"""Gather: human ratings (WMT, WebNLG) and synthetic pairs with their signals."""
