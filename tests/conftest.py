"""Options and settings of the whole test suite."""

import pytest
from hypothesis import settings

settings.register_profile("flame", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("flame")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-scenarios` writes what was seen into `tests/scenarios/*.txt`, to be reviewed as a diff."""
    parser.addoption("--update-scenarios", action="store_true", help="rewrite the transcripts of tests/scenarios")
