"""`python -m pernn`."""

from pernn.lab.cli import main

if __name__ == "__main__":
    main()
