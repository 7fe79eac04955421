"""The live page: it follows the sweeps, for this machine alone, and changes nothing."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pernn.lab.store import Sweep, save_sweep
from store.finished import begin, finish, spec

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


def files_below(root: Path) -> dict[str, float]:
    return {str(path): path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A results directory, the address that serves it, and how to ask."""
    root = tmp_path_factory.mktemp("live") / "results"
    runs = [finish(root, spec(seed), random.Random(seed)).fingerprint for seed in range(2)]
    runs.append(begin(root, spec(10)).fingerprint)
    save_sweep(root, Sweep("vocabulary_size-demo", "vocabulary_size", "demo", {}, runs))
    environment = {**os.environ, "PERNN_EVIDENCE": str(root / "none")}
    process = subprocess.Popen(
        [sys.executable, "-m", "pernn", "ui", "-r", str(root)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        address = urlsplit(process.stdout.readline().split(" on ")[1].split()[0])
        yield root, address
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=240) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def ask(live, name="", method="GET", path=None, **headers):
    _, address = live
    connection = HTTPConnection(address.hostname, address.port, timeout=240)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path or f"{address.path}{name}", headers=headers)
    answer = connection.getresponse()
    content = answer.read().decode()
    connection.close()
    return answer, content


def test_the_state_and_then_the_report_come(live):
    root, _ = live
    before = files_below(root)
    answer, content = ask(live, "state.json")
    (sweep,) = json.loads(content)["sweeps"]
    assert (answer.status, sweep["trials"]) == (200, 3)
    assert sweep["states"]["finished"] == 2
    end = time.monotonic() + 240
    while not (version := json.loads(ask(live, "state.json")[1])["report"]):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert json.loads(ask(live, "state.json")[1])["report"] == version
    answer, content = ask(live, "study.html")
    assert "Scorecard" in content
    assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'self'"
    assert files_below(root) == before


def test_the_page_loads_nothing_from_elsewhere(live):
    for name in ("", "live.js", "live.css"):
        answer, content = ask(live, name)
        assert answer.status == 200
        assert "://" not in content
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"path": "/guess/state.json"}, 403),
        ({"path": "/"}, 404),
        ({"path": "/state.json"}, 404),
        ({"name": "../state.json"}, 404),
        ({"name": "study.html/.."}, 404),
        ({"name": "passwd"}, 404),
        ({"method": "POST"}, 405),
        ({"method": "DELETE", "name": "state.json"}, 405),
    ],
)
def test_others_are_refused(live, words, status):
    answer, content = ask(live, **words)
    assert answer.status == status
    assert "finished" not in content


def test_a_port_that_is_taken_is_said(live):
    root, address = live
    words = ["ui", "-r", str(root), "--port", str(address.port)]
    done = subprocess.run(
        [sys.executable, "-m", "pernn", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "choose another --port" in done.stderr
