"""The report as one HTML page: `flame parity --html`. It needs no network, no script and no file beside it.

- `svg`: elements and numbers as text.
- `pictures`: what a rung looked at, as a small drawing; `flights`: who was in flight when.
- `sheet`: a report as plain values, in the order in which they are read.
- `page.html`, `page.css`: how it is laid out; light or dark as the reader's system is.
"""

from parity.reports.page.render import render, write

__all__ = ["render", "write"]
