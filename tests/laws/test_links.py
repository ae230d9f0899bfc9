"""Every relative link of every Markdown file leads somewhere."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *(path for folder in ("docs", "examples") for path in (ROOT / folder).rglob("*.md"))]


def broken(page: Path) -> list[str]:
    links = (found for found in LINK.findall(page.read_text()) if "://" not in found)
    return [link for link in links if not (page.parent / link).exists()]


def test_links_lead_somewhere() -> None:
    assert {str(page.relative_to(ROOT)): found for page in pages() if (found := broken(page))} == {}


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[one](page.md#part), [two](https://example.org/x.md), [three](gone.md)")
    assert broken(page) == ["gone.md"]
    assert len(pages()) > 10
