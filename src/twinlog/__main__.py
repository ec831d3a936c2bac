"""`python -m twinlog`: the same as the `twinlog` program."""

from twinlog.cli.app import main

if __name__ == "__main__":
    main()
