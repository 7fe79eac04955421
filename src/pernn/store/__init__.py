"""Store: run directories, checkpoints, sweeps. Files only; never loads torch."""

from .archives import Archived, Fate, Unpacked, read_archive, write_archive
from .checkpoints import NUM_LATEST, Checkpoint, CheckpointFolder
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
from .garbage import gc_paused
from .lease import NUM_BEATS, lease_seconds
from .progress import Progress, read_progress, seconds_left
from .queries import query
from .remote import hide_credentials, open_url, write_anywhere
from .run_directory import RunDirectory, check_format, flatten, list_runs, read_record
from .status import RunStatus, describe_machines, is_done, read_records, read_status, read_statuses
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
from .tar_members import create_archive

__all__ = [
    "FORMAT",
    "NUM_BEATS",
    "NUM_LATEST",
    "Archived",
    "Checkpoint",
    "CheckpointFolder",
    "Fate",
    "Progress",
    "RunDirectory",
    "RunStatus",
    "Sweep",
    "Unpacked",
    "check_format",
    "create_archive",
    "describe_machines",
    "flatten",
    "gc_paused",
    "hide_credentials",
    "is_done",
    "is_pause_requested",
    "lease_seconds",
    "list_runs",
    "list_sweeps",
    "load_sweep",
    "num_bytes_below",
    "open_url",
    "parse_json",
    "physical_memory",
    "query",
    "read_archive",
    "read_json",
    "read_progress",
    "read_record",
    "read_records",
    "read_status",
    "read_statuses",
    "refuse_links",
    "request_pause",
    "save_sweep",
    "sealed",
    "seconds_left",
    "storing",
    "sweep_directory",
    "to_json",
    "withdraw_pause",
    "write_anywhere",
    "write_archive",
    "write_atomically",
]
