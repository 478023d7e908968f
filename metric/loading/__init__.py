"""From the name of a checkpoint to its folder, verified, and to an opened model; and how checkpoints are saved."""
