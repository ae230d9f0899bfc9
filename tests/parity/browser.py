"""A page as a browser sees it, headless: its elements after loading, and what it asked the network for.

The page is a local file and the browser can resolve no name, so nothing leaves the machine. What the browser
asks for on its own account is told from what the page asks for by the site that the request is made for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from re import findall
from shutil import which
from subprocess import run

import pytest

CHROMIUM = which("chromium") or which("chromium-browser")
VOID = {"meta", "link", "br", "hr", "img", "input"}

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="`chromium` isn't installed (Debian: apt-get install chromium)")


@dataclass
class Element:
    """One element. text: all text in it."""

    tag: str
    attributes: dict[str, str]
    inside: list["Element"] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def all(self, tag: str, kind: str = "") -> list["Element"]:
        """The elements in this one with that tag, and that class if one is given."""
        return [each for each in self._walk() if each.tag == tag and (not kind or kind in each.attributes.get("class", "").split())]

    def one(self, tag: str, kind: str = "") -> "Element":
        """The only one."""
        (found,) = self.all(tag, kind)
        return found

    @property
    def text(self) -> str:
        """All text in it, with single spaces."""
        return " ".join(" ".join(each for element in (self, *self._walk()) for each in element.words).split())

    def _walk(self) -> Iterator["Element"]:
        for each in self.inside:
            yield each
            yield from each._walk()


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].inside.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].inside.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].words.append(data)


def parsed(html: str) -> Element:
    """The elements of a page. Fails where an element isn't closed by its own tag."""
    builder = _Builder()
    builder.feed(html)
    assert [element.tag for element in builder.open] == [""]
    return builder.root


def opened(page: Path, profile: Path) -> tuple[Element, list[str]]:
    """The page after loading, and the URLs that it asked the network for."""
    log = profile / "net.json"
    profile.mkdir()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-extensions"]
    flags += [f"--user-data-dir={profile / 'data'}", f"--log-net-log={log}", "--host-resolver-rules=MAP * ~NOTFOUND"]
    done = run([str(CHROMIUM), *flags, "--dump-dom", page.resolve().as_uri()], capture_output=True, text=True, timeout=120, check=True)
    ours = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if "site=file://" in line]
    urls = [url for line in ours for url in findall(r'"url":"([^"]*)"', line)]
    return parsed(done.stdout), sorted({url for url in urls if not url.startswith(("file:", "data:"))})
