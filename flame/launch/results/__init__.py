"""What is made of runs that have ended."""
