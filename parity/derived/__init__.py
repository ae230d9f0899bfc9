"""What is told again from the telemetry of one run, once for all rungs that ask: `run.derived(...)`."""
