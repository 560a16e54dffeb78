"""`plant serve` under load: many clients, slow ones, huge and malformed bodies, a swapped model, SIGTERM.

PLANT_LOAD_SECONDS says for how long the clients send (60).
"""

import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SECONDS = float(os.environ.get("PLANT_LOAD_SECONDS", "60"))
SECRET = "qzvxsecret"
TEXT = f"Sign1 word3 {SECRET}"
GROWTH = 150  # megabytes that a server may take more than after its first answers
HUGE = 100_000_000
KINDS = ["usual"] * 6 + ["malformed", "bytes", "empty", "slow"]

pytestmark = pytest.mark.slow


class Server:
    """`plant serve` as a process of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [sys.executable, "-m", "plant.commandline", "serve", str(folder), "--port", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline()
        self.port = int(self.first_line.split()[0].rpartition(":")[2])

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def post(self, body: bytes, *, slowly: bool = False) -> tuple[int, bytes]:
        def pieces() -> Iterator[bytes]:
            for place in range(0, len(body), 8):
                yield body[place : place + 8]
                time.sleep(0.1)

        connection = self.connect()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        connection.request("POST", "/predict", pieces() if slowly else body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def megabytes(self) -> float:
        """Memory that the process holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1000

    def stop(self) -> str:
        """End it; what it said."""
        self.process.send_signal(signal.SIGTERM)
        out, errors = self.process.communicate(timeout=60)
        return self.first_line + out + errors


@pytest.fixture
def serving() -> Iterator[Callable[..., Server]]:
    """(folder, *options) -> a server that listens."""
    started: list[Server] = []

    def start(folder: Path, *options: str) -> Server:
        started.append(Server(folder, *options))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()


BODIES = {
    "usual": json.dumps({"text": TEXT}).encode(),
    "slow": json.dumps({"text": TEXT}).encode(),
    "malformed": json.dumps({"text": TEXT}).encode()[:-1],
    "bytes": SECRET.encode() + b"\xff\xfe",
    "empty": b"",
}
STATUS = {"usual": 200, "slow": 200, "malformed": 422, "bytes": 422, "empty": 422}


def test_fifty_clients_at_once_get_answers_in_bounded_memory_and_no_text_is_logged(saved, serving):
    """Every tenth sends malformed JSON, another one bytes, nothing, or its body a few bytes at a time."""
    server = serving(saved("network"))
    (expected,) = {server.post(BODIES["usual"]) for _ in range(20)}
    before, until, found = server.megabytes(), time.monotonic() + SECONDS, Counter()

    def client(number: int) -> None:
        kind = KINDS[number % len(KINDS)]
        while time.monotonic() < until:
            status, body = server.post(BODIES[kind], slowly=kind == "slow")
            found[kind, status, STATUS[kind] != 200 or body == expected[1]] += 1

    threads = [threading.Thread(target=client, args=[number]) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    grown = server.megabytes() - before
    print(f"{sum(found.values())} requests in {SECONDS:g} s, {grown:.0f} MB more")  # for the record
    assert set(found) == {(kind, status, True) for kind, status in STATUS.items()}
    assert grown < GROWTH
    said = server.stop()
    assert SECRET not in said and "Traceback" not in said


def test_bodies_of_100_megabytes_are_refused_in_bounded_memory(saved, serving):
    server = serving(saved("network"))
    assert server.post(BODIES["usual"])[0] == 200
    before, refused = server.megabytes(), 0
    for _ in range(5):
        connection = server.connect()
        connection.putrequest("POST", "/predict")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(HUGE))
        connection.endheaders()
        with contextlib.suppress(ConnectionError):  # the server answers and closes before all is sent
            for _ in range(HUGE // 1_000_000):
                connection.send(SECRET.encode() * 100_000)
        with contextlib.suppress(ConnectionError, http.client.HTTPException):
            refused += connection.getresponse().status == 413
        connection.close()
    assert server.megabytes() - before < GROWTH
    assert server.post(BODIES["usual"])[0] == 200
    assert refused or server.process.poll() is None
    said = server.stop()
    assert SECRET not in said and "Traceback" not in said


@pytest.mark.parametrize("how", ["another folder takes its name", "its files are overwritten", "it is deleted"])
def test_a_model_that_is_swapped_underneath_changes_no_answer(saved, serving, tmp_path, how):
    folder = shutil.copytree(saved("network"), tmp_path / "model")
    server = serving(folder)
    expected = server.post(BODIES["usual"])
    if how == "its files are overwritten":
        for file in filter(Path.is_file, folder.rglob("*")):
            file.write_bytes(b"")
    else:
        shutil.rmtree(folder)
        if how == "another folder takes its name":
            shutil.copytree(saved("mig_log_odds"), folder)
    assert [server.post(BODIES["usual"]) for _ in range(5)] == [expected] * 5
    assert "Traceback" not in server.stop()


def test_sigterm_under_load_ends_in_order(saved, serving):
    """What is being answered is answered; later clients find nobody."""
    server = serving(saved("network"))
    found, stopped = Counter(), threading.Event()

    def client() -> None:
        while not stopped.is_set():
            try:
                found[server.post(BODIES["usual"])[0]] += 1
            except (OSError, http.client.HTTPException):
                stopped.wait(0.05)

    threads = [threading.Thread(target=client) for _ in range(20)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 60
    while found[200] < 20 and time.monotonic() < until:
        time.sleep(0.05)
    began = time.monotonic()
    said = server.stop()
    seconds = time.monotonic() - began
    stopped.set()
    for thread in threads:
        thread.join()
    assert set(found) <= {200, 503}
    assert seconds < 30
    assert server.process.returncode in (0, -signal.SIGTERM)
    assert SECRET not in said and "Traceback" not in said
