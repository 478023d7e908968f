"""Human ratings: WMT, WebNLG, and files of your own."""
