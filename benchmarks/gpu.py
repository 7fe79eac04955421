"""Everything that is to be known of a GPU, in one command: does it work, is it right, is it fast?

    python benchmarks/gpu.py [--minutes 9] [--out gpu-report] [--device cpu] [--parts times,memory]

Runs part after part, each in a process of its own: what the machine has, the highest rates of its
products, the tests that need a GPU, parity with the CPU, plain steps of a recurrence against fused
ones, times of updates against two scripts and cuDNN, memory, gradient analysis, and a shortened
training at the paper's scale for the minutes left. Every result is written at once, to
`results.jsonl`, `report.json` and `report.md` in the folder `--out`. What fails is recorded with
its traceback, and the rest goes on. The same command goes on where the last one stopped: what is
done is kept, what failed is tried again; after a change of the code choose another folder. Nothing
is fetched, and no package beyond the core install is needed; the tests are left out where pytest is
missing.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
LEFT_EARLY = 5
"""Exit status if something is still to do, as that of `pernn`."""
INTERRUPTED = 130


@dataclass(frozen=True)
class Item:
    """One thing to measure.

    Attributes:
        part: The part that it belongs to.
        name: Its name there.
        run: Returns what was found, as plain values; `finished` is false if it is to go on.
    """

    part: str
    name: str
    run: Callable[[], dict[str, Any]]


class Records:
    """Results of all calls, one JSON line each.

    Args:
        folder: Where they lie.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "results.jsonl"

    def read(self) -> list[dict[str, Any]]:
        """Return all records; a line that a kill cut short is none."""
        if not self.path.exists():
            return []
        found = []
        for line in self.path.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        return found

    def latest(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the newest record of each item; of one that was only begun, none."""
        ended = [one for one in self.read() if "result" in one or "failure" in one]
        return {(one["part"], one["name"]): one for one in ended}

    def add(self, **record: Any) -> None:
        """Append a record and write the report anew."""
        from gpu_report import write_report

        self.folder.mkdir(parents=True, exist_ok=True)
        text = self.path.read_text() if self.path.exists() else ""
        date = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        with self.path.open("a") as file:
            # After a line that was cut short, a new one begins.
            lead = "\n" if text and not text.endswith("\n") else ""
            file.write(lead + json.dumps({**record, "date": date}) + "\n")
        if "begun" not in record:
            write_report(self.folder, self.latest())

    def is_due(self, item: Item, call: float) -> bool:
        """Return whether an item is to be run: not done, and not yet failed in this call."""
        last = self.latest().get((item.part, item.name))
        if last is None:
            return True
        if "result" in last:
            return not last["result"].get("finished", True) and last["call"] != call
        return bool(last["call"] != call)


def run_items(items: Sequence[Item], records: Records, call: float, until: float) -> bool:
    """Run what is due, until the time is up.

    Args:
        items: Of one part.
        records: Where results go.
        call: When the driver was started; tells its failures from those of earlier calls.
        until: When to stop, by `time.time`.

    Returns:
        Whether the device still answers; after an error that it does not survive, a new process
        must go on.
    """
    for item in items:
        if not records.is_due(item, call) or time.time() >= until:
            continue
        head = {"part": item.part, "name": item.name, "call": call}
        records.add(**head, begun=True)
        begun = time.perf_counter()
        try:
            result = item.run()
            records.add(**head, result=result, seconds=time.perf_counter() - begun)
        except Exception:  # noqa: BLE001  # whatever it is belongs in the report
            records.add(**head, failure=traceback.format_exc())
            if not _device_answers():
                return False
    return True


def _device_answers() -> bool:
    import torch

    if not torch.cuda.is_available():
        return True
    try:
        torch.cuda.empty_cache()
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def drive(options: argparse.Namespace, call: float) -> None:
    """Run the parts that were asked for, each in processes of its own."""
    until = call + 60 * options.minutes
    records = Records(options.out)
    for part in options.parts:
        while time.time() < until:
            before = records.read()
            status, said = _run_child(part, options, call, until)
            if status == 0 or time.time() >= until:
                break
            last, made = next(iter(records.read()[-1:]), {}), len(records.read()) - len(before)
            failure = f"the process died with exit status {status}\n{said[-2000:]}"
            if not made:
                records.add(part=part, name="(begin)", call=call, failure=failure)
                break
            if "begun" in last:
                records.add(part=part, name=last["name"], call=call, failure=failure)


def _run_child(
    part: str, options: argparse.Namespace, call: float, until: float
) -> tuple[int, str]:
    command = [sys.executable, str(Path(__file__)), "--out", str(options.out)]
    command += ["--device", options.device, "--child", part, str(call), str(until)]
    paths = [str(ROOT / "src"), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    child = subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, said = child.communicate(timeout=max(0.0, until - time.time()) + 10)
    except subprocess.TimeoutExpired:
        return -int(signal.SIGKILL), ""
    finally:
        # What it has started goes with it.
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return child.returncode, said


def main() -> int:
    """Run everything, or be the process of one part."""
    from gpu_parts import PARTS, Call, items_of

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=9.0, help="of this call")
    parser.add_argument("--out", type=Path, default=Path("gpu-report"))
    parser.add_argument("--device", default="cuda", help="cpu: small shapes, to try this out")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"--parts: expected some of {','.join(PARTS)}, got {','.join(unknown)}")
    records = Records(options.out)
    if options.child:
        if options.device == "cpu":
            import torch

            torch.set_num_threads(1)  # all is small there
        part, call, until = options.child[0], float(options.child[1]), float(options.child[2])
        items = items_of(part, Call(options.device, records, until))
        return 0 if run_items(items, records, call, until) else 1
    call = time.time()
    try:
        drive(options, call)
    except KeyboardInterrupt:
        print(f"interrupted: the same command goes on; so far: {options.out / 'report.md'}")
        return INTERRUPTED
    due = [
        item
        for part in options.parts
        for item in items_of(part, Call(options.device, records, call))
        if records.is_due(item, 0)
    ]
    print(f"{len(due)} items left or failed; the report: {options.out / 'report.md'}")
    return LEFT_EARLY if due else 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    # Also where the shell has turned Ctrl-C off, and for a batch system's notice.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    sys.path.insert(0, str(ROOT / "src"))
    raise SystemExit(main())
