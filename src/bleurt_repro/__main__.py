"""Run the command line as `python -m bleurt_repro`."""

from bleurt_repro.cli import main

if __name__ == "__main__":
    main()
