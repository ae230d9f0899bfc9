"""Where two runs first part, and why."""
