"""A decision that differs is never taken for lateness."""

import pytest

from tests.docs.judged import only_late


@pytest.mark.parametrize(
    ("told", "late"),
    [
        ("FAIL    Lt  lateness  dist  ROOT-CAUSE", True),
        ("PASS    L1   12 cycles\nFAIL    punctual     nothing is sent before it is due", True),
        ('{"id":"U6","name":"x","domain":"PHYSICAL","verdict":"FAIL"}', True),
        ("FAIL    Lt  lateness\nFAIL    L1  cohort_sequence", False),
        ('{"id":"L1","verdict":"FAIL"},{"id":"Lt","verdict":"FAIL"}', False),
        ("no complete pair", False),
    ],
)
def test_only_what_looks_at_time_is_late(told: str, late: bool) -> None:
    assert only_late(told) is late
