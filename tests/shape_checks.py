"""The run-time checker of annotations, which pytest puts around every function of pernn."""

from beartype import BeartypeConf, beartype

# An int is welcome where a float is: type checkers agree.
check = beartype(conf=BeartypeConf(is_pep484_tower=True))
