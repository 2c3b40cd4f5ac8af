"""Refuses built pages that load anything from elsewhere: `python scripts/_offline.py SITE`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video)\b[^>]*\bsrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preload|preconnect|icon|modulepreload))[^>]*\bhref=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|(?:url\(|@import\s+)["']?((?:https?:)?//[^"')\s]+)""",
    re.IGNORECASE,
)
"""Addresses that a browser fetches unasked: of scripts, pictures, styles. Links that a reader may follow are not."""


def main(site: Path) -> int:
    """Name every page that would use the network."""
    found = []
    for page in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        found += [
            f"{page.relative_to(site)} loads {next(filter(None, hit))}" for hit in LOADED.findall(page.read_text())
        ]
    sys.stderr.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
