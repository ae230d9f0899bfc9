"""All that comes before a process is started: from flags to launch objects, and the gate that these must pass."""
