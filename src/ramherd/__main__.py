"""`python -m ramherd`."""

from ramherd.cli.main import main

if __name__ == "__main__":
    main()
