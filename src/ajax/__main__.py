"""`python -m ajax`: the command `ajax`."""

from ajax.cli import main

main()
