"""How a command shows itself: the consoles, progress, and who is told."""
