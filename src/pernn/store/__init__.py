"""Store: run directories, checkpoints, sweeps. Files only; never loads torch."""

from .archives import Fate, Unpacked, read_archive, write_archive
from .checkpoints import Checkpoint, CheckpointFolder
from .files import (
    FORMAT,
    num_bytes_below,
    parse_json,
    physical_memory,
    read_json,
    refuse_links,
    sealed,
    storing,
    to_json,
    write_atomically,
)
from .remote import open_url
from .run_directory import RunDirectory, check_format, flatten, list_runs, read_record
from .status import RunStatus, describe_machines, is_done, read_records, read_status
from .sweeps import Sweep, list_sweeps, load_sweep, save_sweep, sweep_directory

__all__ = [
    "FORMAT",
    "Checkpoint",
    "CheckpointFolder",
    "Fate",
    "RunDirectory",
    "RunStatus",
    "Sweep",
    "Unpacked",
    "check_format",
    "describe_machines",
    "flatten",
    "is_done",
    "list_runs",
    "list_sweeps",
    "load_sweep",
    "num_bytes_below",
    "open_url",
    "parse_json",
    "physical_memory",
    "read_archive",
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
    "write_archive",
    "write_atomically",
]
