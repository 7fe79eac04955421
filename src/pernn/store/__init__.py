"""Store: run directories, checkpoints, sweeps. Files only; never loads torch."""

from .checkpoints import NUM_LATEST, Checkpoint, CheckpointFolder
from .files import FORMAT, read_json, storing, to_json, write_atomically
from .lease import NUM_BEATS, lease_seconds
from .run_directory import RunDirectory, flatten, read_record
from .status import RunStatus, describe_machines, is_done, read_records, read_status
from .sweeps import (
    Sweep,
    is_pause_requested,
    list_sweeps,
    load_sweep,
    request_pause,
    save_sweep,
    sweep_directory,
    withdraw_pause,
)

__all__ = [
    "FORMAT",
    "NUM_BEATS",
    "NUM_LATEST",
    "Checkpoint",
    "CheckpointFolder",
    "RunDirectory",
    "RunStatus",
    "Sweep",
    "describe_machines",
    "flatten",
    "is_done",
    "is_pause_requested",
    "lease_seconds",
    "list_sweeps",
    "load_sweep",
    "read_json",
    "read_record",
    "read_records",
    "read_status",
    "request_pause",
    "save_sweep",
    "storing",
    "sweep_directory",
    "to_json",
    "withdraw_pause",
    "write_atomically",
]
