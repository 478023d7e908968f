"""A disk that is as small as a test wants it: the fixture `small_disk` mounts it."""

from __future__ import annotations

import subprocess


def resize(folder, size):
    subprocess.run(["mount", "-o", f"remount,size={size}", folder], check=True)
