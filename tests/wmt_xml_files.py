"""Documents of a test set in WMT's XML, made of own sentences."""

from __future__ import annotations


def make_document(name, sources, systems=("Online-A", "NVIDIA-NeMo"), translators=("B", "A")):
    """A document whose references and outputs name their translator or system before the source."""
    references = "".join(
        f'<ref lang="en" translator="{translator}">{_segments([f"{translator} of {text}" for text in sources])}</ref>'
        for translator in translators
    )
    outputs = "".join(
        f'<hyp lang="en" system="{system}">{_segments([f" {system}: {text} " for text in sources])}</hyp>'
        for system in systems
    )
    return f'<doc id="{name}"><src lang="is">{_segments(sources)}</src>{references}{outputs}</doc>'


def _segments(texts):
    return "<p>" + "".join(f'<seg id="{i}">{text}</seg>' for i, text in enumerate(texts, start=1)) + "</p>"
