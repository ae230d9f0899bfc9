"""What is computed: tasks, forward gradients, parameters, data. Torch is imported by the tasks that need it."""
