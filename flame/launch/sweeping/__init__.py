"""What `flame sweep` consists of: its simulations and what is there of them, the gate before them, the processes that run them."""
