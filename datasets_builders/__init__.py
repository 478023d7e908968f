"""Gather: human ratings (WMT, WebNLG, MQM, MLQE-PE) and synthetic pairs with their signals."""

# The paper that the builders follow.
CITATION = """\
@inproceedings{sellam-etal-2020-bleurt,
  title = "{BLEURT}: Learning Robust Metrics for Text Generation",
  author = "Sellam, Thibault and Das, Dipanjan and Parikh, Ankur",
  booktitle = "Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics",
  year = "2020",
  url = "https://aclanthology.org/2020.acl-main.704"
}
"""
