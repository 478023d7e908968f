"""`python -m bleurt_repro` is `bleurt-repro`."""

from bleurt_repro.cli import main

if __name__ == "__main__":
    main()
