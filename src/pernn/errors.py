"""The exception tree.

PernnError
├── ConfigError        a value, key or combination that cannot be meant (also a ValueError)
├── MachineError       this machine lacks what was asked for: a device, an optional package
├── StoreError         results directories
│   ├── CorruptError   a file whose content is not what was written
│   ├── VersionError   written by a newer pernn
│   └── BusyError      another process holds the run
└── TrialError         a trial could not be finished: the numbers went wrong
"""


class PernnError(Exception):
    """Whatever pernn raises on purpose; the message says what to do."""


class ConfigError(PernnError, ValueError):
    """A value, key or combination of values that cannot be meant."""


class MachineError(PernnError):
    """This machine lacks what was asked for."""


class StoreError(PernnError):
    """A results directory cannot be read or written."""


class CorruptError(StoreError):
    """A file does not hold what was written to it."""


class VersionError(StoreError):
    """A directory was written by a newer version of pernn."""


class BusyError(StoreError):
    """Another process is working on this run."""


class TrialError(PernnError):
    """A trial cannot go on, for example because its loss is not a number."""
