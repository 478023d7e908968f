"""From the name of a checkpoint to its folder on this machine, verified, and to an opened model; and how checkpoints are saved."""
