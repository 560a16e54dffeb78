"""The resources of a step: seconds, memory and energy, summed over its processes and its attempts."""

from __future__ import annotations

import ctypes
import math
import os
import resource
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MB = 1e6
POWERCAP = Path("/sys/class/powercap")
SAMPLE_SECONDS = 60.0  # at 200 watts, a counter of 2^18 joules restarts every 22 minutes
UUID_LENGTH = 96  # NVML_DEVICE_UUID_V2_BUFFER_SIZE
SUMS = ("wall_seconds", "cpu_seconds")
PEAKS = ("peak_host_mb", "peak_device_mb")


class Meter:
    """A clock and energy counters. They start when the object is made.

    The energy is that of whole devices and whole processors during the step. It is an upper bound if other programs use
    them too.

    Attributes:
        started: `time.time()` at the start.
    """

    def __init__(self) -> None:
        self.started = time.time()
        self._host = HostEnergy()
        self._devices = device_counters()

    def read(self, device: str) -> dict[str, Any]:
        """Resources used so far, summed over the processes of the job. All processes must call it.

        Args:
            device: the device that did the work, as torch names it.

        Returns:
            wall_seconds; cpu_seconds; peak_host_mb; peak_device_mb (None without a GPU); devices, the number of GPUs;
            processes; energy_joules, {"device": J, "host": J}; energy_missing, the reason if one of these two is None.
        """
        own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss: bytes on macOS, KiB on Linux
        cuda = cuda_of_this_step(device)
        gpus = [] if cuda is None else [i for i in range(cuda.device_count()) if cuda.max_memory_allocated(i) > 0]
        on_devices, no_device = self._device_joules(cuda, gpus)
        on_host, no_host = self._host.joules()
        if on_host is not None and os.environ.get("LOCAL_RANK", "0") != "0":
            on_host = 0.0  # the first process of a node counts its processors
        total = over_processes({
            "cpu_seconds": own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
            "peak_host_mb": max(own.ru_maxrss, children.ru_maxrss) * unit / MB,
            "peak_device_mb": sum(cuda.max_memory_allocated(i) for i in gpus) / MB if gpus else None,
            "devices": len(gpus),
            "processes": 1,
            "device": on_devices,
            "host": on_host,
        })  # fmt: skip
        energy = {name: _rounded(total[name], 1) for name in ("device", "host")}
        reasons = {"device": no_device, "host": no_host}
        return {
            "wall_seconds": round(time.time() - self.started, 3),
            "cpu_seconds": _rounded(total["cpu_seconds"], 3),
            **{name: _rounded(total[name], 1) for name in PEAKS},
            **{name: int(total[name] or 0) for name in ("devices", "processes")},
            "energy_joules": energy,
            "energy_missing": {name: reasons[name] for name, value in energy.items() if value is None},
        }

    def _device_joules(self, cuda: Any, gpus: list[int]) -> tuple[float | None, str]:
        """Joules of the GPUs since the start. Or None, and the reason."""
        if not gpus:
            return None, "no GPU was used"
        now = device_counters()
        names = [str(cuda.get_device_properties(i).uuid).removeprefix("GPU-") for i in gpus]
        if not now.keys() & self._devices.keys() >= set(names):
            return None, "the driver counts no energy of this device"
        return sum(now[name] - self._devices[name] for name in names), ""


def cuda_of_this_step(device: str) -> Any:
    """torch.cuda if this step has used it, else None. torch is never imported here."""
    torch = sys.modules.get("torch")
    used = torch is not None and device.startswith("cuda") and torch.cuda.is_initialized()
    return torch.cuda if torch is not None and used else None


def over_processes(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Sums over the processes of the job. A sum is None if one process has None."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return dict(values)
    here = [math.nan if value is None else float(value) for value in values.values()]
    total = torch.tensor(here, dtype=torch.float64)
    torch.distributed.all_reduce(total)
    return {name: None if math.isnan(v) else v for name, v in zip(values, total.tolist(), strict=True)}


def device_counters() -> dict[str, float]:
    """UUID of each NVIDIA device that counts energy (Volta and later) -> joules since the driver was loaded.

    Empty without an NVIDIA driver.
    """
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return {}
    if nvml.nvmlInit_v2() != 0:
        return {}
    number, joules = ctypes.c_uint(), {}
    if nvml.nvmlDeviceGetCount_v2(ctypes.byref(number)) == 0:
        for index in range(number.value):
            handle, uuid = ctypes.c_void_p(), ctypes.create_string_buffer(UUID_LENGTH)
            energy = ctypes.c_ulonglong()  # millijoules
            if (
                nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)) == 0
                and nvml.nvmlDeviceGetUUID(handle, uuid, ctypes.c_uint(UUID_LENGTH)) == 0
                and nvml.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(energy)) == 0
            ):
                joules[uuid.value.decode().removeprefix("GPU-")] = energy.value / 1000
    nvml.nvmlShutdown()
    return joules


class HostEnergy:
    """Joules of the machine's processors (RAPL): packages, and memory if it has a counter of its own.

    The counters restart at a small maximum. A thread reads them once a minute, so that no restart is missed.

    Args:
        root: folder in which the kernel shows the counters.
    """

    def __init__(self, root: Path = POWERCAP) -> None:
        self._lock, self._total = threading.Lock(), 0
        self._missing = "the kernel shows no RAPL counters"
        self._ranges: dict[Path, int] = {}
        self._last: dict[Path, int] = {}
        for domain in sorted(root.glob("intel-rapl:*")):  # AMD's too; intel-rapl-mmio counts the same a second time
            try:
                name = (domain / "name").read_text(encoding="ascii").strip()
                if name.startswith("package") or name == "dram":
                    self._last[domain] = _number(domain / "energy_uj")
                    self._ranges[domain] = _number(domain / "max_energy_range_uj")
            except OSError:  # on most systems only the administrator may read them
                self._missing, self._last = "the RAPL counters are not readable for this user", {}
                break
        if self._last:
            threading.Thread(target=self._watch, name="energy", daemon=True).start()

    def joules(self) -> tuple[float | None, str]:
        """Joules since the start. Or None, and the reason."""
        if not self._last:
            return None, self._missing
        self.sample()
        return self._total / 1e6, ""

    def sample(self) -> None:
        """Add what was counted since the last call. A counter that is lower than before has restarted."""
        with self._lock:
            for domain, before in self._last.items():
                now = _number(domain / "energy_uj")
                self._total += now - before if now >= before else now - before + self._ranges[domain]
                self._last[domain] = now

    def _watch(self) -> None:
        while True:
            time.sleep(SAMPLE_SECONDS)
            self.sample()


def add_attempt(earlier: Mapping[str, Any], last: Mapping[str, Any]) -> dict[str, Any]:
    """Resources of a step that was interrupted and continued: sums of seconds and joules, maxima of peaks."""

    def added(one: float | None, two: float | None) -> float | None:
        return None if one is None or two is None else round(one + two, 3)

    peaks = {name: [peak for peak in (earlier[name], last[name]) if peak is not None] for name in PEAKS}
    joules = {name: added(earlier["energy_joules"][name], value) for name, value in last["energy_joules"].items()}
    return {
        **last,
        **{name: added(earlier[name], last[name]) for name in SUMS},
        **{name: max(both, default=None) for name, both in peaks.items()},
        "energy_joules": joules,
        "energy_missing": {**earlier["energy_missing"], **last["energy_missing"]},
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _number(path: Path) -> int:
    return int(path.read_text(encoding="ascii"))
