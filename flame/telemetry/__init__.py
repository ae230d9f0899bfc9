"""The records of a run: schema, writer, streaming reader. The parity engine and the figures see nothing else."""
