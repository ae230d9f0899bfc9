"""The aggregator and the trainer, each written once, and the three ledgers that they keep."""
