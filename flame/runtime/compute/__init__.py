"""Who runs the tasks of Compute effects, what that takes of the machine, and what a simulated machine takes beyond the model."""
