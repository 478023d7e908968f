"""Read official TensorFlow checkpoints and those of bleurt-pytorch."""
