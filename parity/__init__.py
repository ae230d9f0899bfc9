"""The parity engine: proof, from paired telemetry, that a real run and its simulated twin agree.

It reads telemetry and configuration, never roles or runtime (P0 alone replays journals).
"""
