"""The vocabulary of both worlds: time, events, effects, messages, tasks. Standard library only."""
