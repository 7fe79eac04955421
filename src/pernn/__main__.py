"""`python -m pernn`."""

from pernn.cli import main

main()
