"""The folder of runs: what lies in it, what still lives of it, and how runs there are stopped and removed."""
