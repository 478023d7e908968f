"""Learn: pre-train on signals, fine-tune on ratings, run the experiments of the papers."""
