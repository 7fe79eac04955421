"""`python -m pernn`."""

from pernn.cli import main

if __name__ == "__main__":
    main()
