"""The two worlds: a simulation driver and a real one, and what they stand on. Only here may a world be known."""
