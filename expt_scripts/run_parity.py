#!/usr/bin/env python3
"""Whether real runs and their simulated twins agree: `run_parity.py [PATH ...] [--json] [--yes] ...` (as `flame parity`)."""

from parity.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
