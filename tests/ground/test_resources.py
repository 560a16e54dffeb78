"""Seconds, memory and energy of a step, with counters in place of a driver's."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plant.ground import resources
from plant.ground.resources import Meter, add_attempt, device_counters

SOURCE = Path(resources.__file__).parents[2]


class FakeNvml:
    """Two devices: one that counts 5 joules, and one too old to count."""

    started = 0

    def nvmlInit_v2(self):
        type(self).started += 1
        return 0

    def nvmlShutdown(self):
        type(self).started -= 1
        return 0

    def nvmlDeviceGetCount_v2(self, count):
        count._obj.value = 2
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, handle):
        handle._obj.value = 1000 + index.value
        return 0

    def nvmlDeviceGetUUID(self, handle, buffer, length):
        buffer.value = f"GPU-uuid-{handle.value - 1000}".encode()
        assert len(buffer.value) < length.value
        return 0

    def nvmlDeviceGetTotalEnergyConsumption(self, handle, energy):
        energy._obj.value = 5000
        return 0 if handle.value == 1000 else 3


def test_devices_that_count_energy_are_read_in_joules_and_without_a_driver_there_are_none(monkeypatch):
    monkeypatch.setattr(resources.ctypes, "CDLL", lambda name: {"libnvidia-ml.so.1": FakeNvml()}[name])
    assert device_counters() == {"uuid-0": 5.0}
    assert FakeNvml.started == 0

    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(resources.ctypes, "CDLL", missing)
    assert device_counters() == {}


class FakeCuda:
    """Three GPUs, of which a step has used the last two."""

    allocated = (0, 2_000_000, 3_000_000)

    def device_count(self):
        return 3

    def max_memory_allocated(self, index):
        return self.allocated[index]

    def get_device_properties(self, index):
        return type("Properties", (), {"uuid": f"u{index}"})()


def test_the_devices_that_were_used_are_counted_together_and_one_without_a_counter_is_said(monkeypatch):
    counters = iter([{"u0": 1.0, "u1": 10.0, "u2": 100.0}, {"u0": 50.0, "u1": 12.0, "u2": 130.0}])
    monkeypatch.setattr(resources, "cuda_of_this_step", lambda device: FakeCuda())
    monkeypatch.setattr(resources, "device_counters", lambda: next(counters))
    used = Meter().read("cuda:1")
    assert (used["devices"], used["peak_device_mb"], used["energy_joules"]["device"]) == (2, 5.0, 32.0)
    assert "device" not in used["energy_missing"]
    monkeypatch.setattr(resources, "device_counters", lambda: {"u1": 1.0})
    used = Meter().read("cuda")
    assert used["energy_joules"]["device"] is None
    assert "counts no energy" in used["energy_missing"]["device"]


def test_resources_are_measured_in_seconds_and_megabytes():
    meter = Meter()
    meter.started = time.time() - 2
    used = meter.read("cpu")
    assert 2 <= used["wall_seconds"] < 60
    assert used["cpu_seconds"] > 0
    assert 20 < used["peak_host_mb"] < 100_000
    assert (used["peak_device_mb"], used["devices"], used["processes"]) == (None, 0, 1)
    assert used["energy_joules"]["device"] is None
    assert used["energy_missing"]["device"] == "no GPU was used"


def test_what_interrupted_attempts_used_is_added_and_peaks_are_compared():
    first = {"wall_seconds": 5.0, "cpu_seconds": 4.0, "peak_host_mb": 9.0, "peak_device_mb": None, "devices": 1,
             "energy_joules": {"device": 3.0}, "energy_missing": {}}  # fmt: skip
    last = {**first, "wall_seconds": 2.0, "peak_host_mb": 7.0, "peak_device_mb": 6.0,
            "energy_joules": {"device": 0.5}}  # fmt: skip
    both = add_attempt(first, last)
    assert (both["wall_seconds"], both["cpu_seconds"]) == (7.0, 8.0)
    assert (both["peak_host_mb"], both["peak_device_mb"]) == (9.0, 6.0)
    assert both["energy_joules"] == {"device": 3.5}
    unknown = {**last, "energy_joules": {"device": None}, "energy_missing": {"device": "why"}}
    both = add_attempt(first, unknown)
    assert (both["energy_joules"], both["energy_missing"]) == ({"device": None}, {"device": "why"})


MEASURE = """
import json, resource
from plant.model.parallel import processes
from plant.ground.resources import Meter
meter = Meter()
processes()
own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
found = [own, meter.read("cpu")]
import torch
torch.distributed.destroy_process_group()  # as a job does: its threads may abort Python as it ends
print(json.dumps(found))
"""


def test_several_processes_of_a_job_are_counted_together():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "2"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", MEASURE],
            env={**os.environ, **group, "PYTHONPATH": str(SOURCE), "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
        )
        for rank in range(2)
    ]
    (own, one), (other, two) = (json.loads(process.communicate(timeout=60)[0]) for process in started)
    for name in ("cpu_seconds", "peak_host_mb", "peak_device_mb", "devices", "energy_joules"):
        assert one[name] == two[name]
    assert one["processes"] == 2
    assert one["peak_host_mb"] == pytest.approx(own + other, rel=0.05)
