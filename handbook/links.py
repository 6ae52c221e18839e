"""Check a site as it lies on disk: links lead somewhere, nothing comes from a network.

Run as ``python -m handbook.links SITE``.
"""

import argparse
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """What a page refers to, and what can be referred to on it."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect links, what is loaded, and identifiers."""
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if "src" in given:
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(given["href"])


@cache
def read(path: Path) -> _Page:
    """Return a page of the site."""
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def broken_links(site: Path) -> list[str]:
    """Return a sentence for each link that leads nowhere, and each loaded address."""
    problems = []
    for path in sorted(site.rglob("*.html")):
        page, name = read(path), path.relative_to(site)
        for target in page.loaded:
            if urlsplit(target).scheme in ("http", "https") or target.startswith("//"):
                problems.append(f"{name} loads {target} from the network")
        # The page of errors has addresses of a server, and is never opened from disk.
        if path.name != "404.html":
            every = [*page.links, *page.loaded]
            problems += [f"{name} leads to {t}" for t in every if _is_broken(path, t)]
    return problems


def _is_broken(page: Path, target: str) -> bool:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return False
    path = page.parent / unquote(parts.path) if parts.path else page
    if not path.is_file():
        return True
    place = unquote(parts.fragment)
    known = {"", "__"} | (read(path).places if path.suffix == ".html" else {place})
    return place not in known and not place.startswith("__")


def main() -> None:
    """End in failure where a link does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    lost = broken_links(parser.parse_args().site)
    raise SystemExit("\n".join(lost) or 0)


if __name__ == "__main__":
    main()
