"""`python -m bleurt_repro` is `bleurt-repro`."""

from bleurt_repro.cli import main

main()
