"""Lead links that leave docs/ to the repository, when mkdocs builds the site; a missing file is a warning.

mkdocs.yml names this file as a hook. `make docs` treats warnings as errors.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")
LOG = logging.getLogger("mkdocs.hooks.site_links")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Replace each relative link to a folder, or to a file outside docs/, by its address in the repository or its path."""
    folder = (DOCS / page.file.src_uri).parent

    def replace(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / match["path"]))
        if target.is_relative_to(DOCS) and target.is_file():
            return match[0]
        if not target.exists():
            LOG.warning("%s links to %s, which does not exist", page.file.src_uri, match["path"])
            return match[0]
        path = target.relative_to(DOCS.parent).as_posix()
        if not config.repo_url:
            return match["text"] if path in match["text"] else f"{match['text']} (`{path}`)"
        kind = "tree" if target.is_dir() else "blob"
        return f"[{match['text']}]({config.repo_url.rstrip('/')}/{kind}/main/{path}{match['anchor'] or ''})"

    return LINK.sub(replace, markdown)
