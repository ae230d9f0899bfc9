"""Pure decisions, one file each: a frozen configuration and a function.

Folders are listed by hand in each `__init__`: greppable, one line a policy. A policy that remembers
takes its state and returns the next one, so that the state belongs to the machine's snapshot.
"""
