"""How two of anything are compared: equality told in words, and statistics that know how little a short series says."""
