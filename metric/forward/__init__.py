"""From pairs of texts to scores: encoding, batches, and the forward passes."""
