"""Figures of a paper from the telemetry of finished runs: nothing is run, and the same runs give the same bytes."""
