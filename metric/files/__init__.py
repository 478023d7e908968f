"""Files: every reader names file and line in its errors; every writer writes whole or not at all."""
