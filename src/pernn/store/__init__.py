"""Store: run directories, checkpoints, sweeps. Files only; never loads torch."""

from .checkpoints import Checkpoint, CheckpointFolder
from .files import (
    FORMAT,
    parse_json,
    physical_memory,
    read_json,
    refuse_links,
    sealed,
    storing,
    to_json,
    write_atomically,
)
from .run_directory import RunDirectory, flatten, read_record
from .status import RunStatus, describe_machines, is_done, read_records, read_status
from .sweeps import Sweep, list_sweeps, load_sweep, save_sweep, sweep_directory

__all__ = [
    "FORMAT",
    "Checkpoint",
    "CheckpointFolder",
    "RunDirectory",
    "RunStatus",
    "Sweep",
    "describe_machines",
    "flatten",
    "is_done",
    "list_sweeps",
    "load_sweep",
    "parse_json",
    "physical_memory",
    "read_json",
    "read_record",
    "read_records",
    "read_status",
    "refuse_links",
    "save_sweep",
    "sealed",
    "storing",
    "sweep_directory",
    "to_json",
    "write_atomically",
]
