"""Coverage-guided fuzzing of all that reads files from elsewhere: see README.md."""
