"""What one run must satisfy by itself (`flame check`, `flame parity --validate`)."""
