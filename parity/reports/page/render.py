"""Reports into the template, and the page onto the disk with `parity.json` beside it."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from parity.engine import Report
from parity.reports.document import text
from parity.reports.page.sheet import scoreboard, sheet_of
from parity.reports.printable import printable
from parity.reports.terminal import LETTERS

DATA = "parity.json"
PAGE = "index.html"


def write(target: Path, reports: Sequence[Report], refused: Sequence[str] = ()) -> Path:
    """Write the page to `target` (a file that ends in .html, or a folder for index.html), the document beside it.

    Returns the path of the page. Folders are made.
    """
    page = target if target.suffix.lower() in (".html", ".htm") else target / PAGE
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(render(reports, refused), encoding="utf-8")
    (page.parent / DATA).write_bytes(text(reports))
    return page


def render(reports: Sequence[Report], refused: Sequence[str] = ()) -> str:
    """The page. refused: why pairs that were asked for aren't in it."""
    sheets = [sheet_of(report, f"p{number}") for number, report in enumerate(reports)]
    return printable(_template().render(sheets=sheets, board=scoreboard(sheets), refused=refused, data=DATA))


@cache
def _template() -> Template:
    loader = PackageLoader("parity.reports.page", ".")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.globals["letters"] = LETTERS
    environment.globals["css"] = Markup(loader.get_source(environment, "page.css")[0])
    return environment.get_template("page.html")
