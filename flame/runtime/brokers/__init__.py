"""Brokers that flame runs, or finds running."""
