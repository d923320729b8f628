"""What is computed on one block, and nothing else."""
