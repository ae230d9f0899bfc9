"""Figures from telemetry: reducers over finished runs, never anything that runs again."""
