#!/usr/bin/env python3
"""Whether real runs and their simulated twins agree: `run_parity.py [PATH ...] [--json] [--yes] ...` (as `flame parity`)."""

from start import start


def main() -> None:
    """Run the checker."""
    from parity.cli import main as check

    raise SystemExit(check())


if __name__ == "__main__":
    start(main)
