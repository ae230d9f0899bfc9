"""Text of telemetry as XML and HTML can say it."""

import re

FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that neither has a way to say."""


def printable(text: str) -> str:
    """`text`, a replacement character for each that can't be said."""
    return FORBIDDEN.sub("�", text)
