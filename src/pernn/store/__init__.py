"""Store: run directories, checkpoints, sweeps. Files only; never loads torch."""

from .checkpoints import Checkpoint, CheckpointFolder
from .files import FORMAT, read_json, storing, to_json, write_atomically
from .index import indexed, read_statuses, rebuild, register, registering
from .progress import Progress, read_progress, seconds_left
from .queries import Answer, describe_index, query
from .remote import hide_credentials, write_anywhere
from .run_directory import RunDirectory, flatten, read_record
from .status import RunStatus, describe_machines, is_done, read_records, read_status
from .sweeps import Sweep, list_sweeps, load_sweep, save_sweep, sweep_directory

__all__ = [
    "FORMAT",
    "Answer",
    "Checkpoint",
    "CheckpointFolder",
    "Progress",
    "RunDirectory",
    "RunStatus",
    "Sweep",
    "describe_index",
    "describe_machines",
    "flatten",
    "hide_credentials",
    "indexed",
    "is_done",
    "list_sweeps",
    "load_sweep",
    "query",
    "read_json",
    "read_progress",
    "read_record",
    "read_records",
    "read_status",
    "read_statuses",
    "rebuild",
    "register",
    "registering",
    "save_sweep",
    "seconds_left",
    "storing",
    "sweep_directory",
    "to_json",
    "write_anywhere",
    "write_atomically",
]
