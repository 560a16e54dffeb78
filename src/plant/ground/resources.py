"""What a step uses: seconds, memory and energy, over all its processes and all its attempts."""

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
SAMPLE_SECONDS = 60.0  # a counter of 2^18 joules comes round every 22 minutes at 200 watts
UUID_LENGTH = 96  # NVML_DEVICE_UUID_V2_BUFFER_SIZE
SUMS = ("wall_seconds", "cpu_seconds")
PEAKS = ("peak_host_mb", "peak_device_mb")


class Meter:
    """Clock and energy counters, running from the moment it is made.

    Energy is that of whole devices and whole processors over the step, whoever else uses them: what the step costs
    where it has them to itself, an upper bound elsewhere.

    Attributes:
        started: `time.time()` of that moment.
    """

    def __init__(self) -> None:
        self.started = time.time()
        self._host = HostEnergy()
        self._devices = device_counters()

    def read(self, device: str) -> dict[str, Any]:
        """What has been used up to now, summed over the processes of the job: all of them must call.

        Args:
            device: that did the work, as torch names it.

        Returns:
            wall_seconds; cpu_seconds; peak_host_mb; peak_device_mb (None without a GPU); devices, the number of GPUs;
            processes; energy_joules, {"device": J, "host": J}; energy_missing, why one of these two is None.
        """
        own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss: bytes on macOS, KiB on Linux
        used = used_devices(device)
        peaks = [cuda_of_this_step(device).max_memory_allocated(index) for index in used]
        on_devices, no_device = self._device_joules(device, used)
        on_host, no_host = self._host.joules()
        second = os.environ.get("LOCAL_RANK", "0") != "0"  # its processors are those of the first process of the node
        values = {
            "cpu_seconds": own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
            "peak_host_mb": max(own.ru_maxrss, children.ru_maxrss) * unit / MB,
            "peak_device_mb": sum(peaks) / MB if used else None,
            "devices": len(used),
            "processes": 1,
            "device": on_devices,
            "host": 0.0 if second and on_host is not None else on_host,
        }
        total = over_processes(values)
        energy = {name: _rounded(total.pop(name), 1) for name in ("device", "host")}
        reasons = {"device": no_device, "host": no_host}
        return {
            "wall_seconds": round(time.time() - self.started, 3),
            "cpu_seconds": _rounded(total.pop("cpu_seconds"), 3),
            **{name: _rounded(total.pop(name), 1) for name in PEAKS},
            **{name: int(value or 0) for name, value in total.items()},
            "energy_joules": energy,
            "energy_missing": {name: reasons[name] for name, value in energy.items() if value is None},
        }

    def _device_joules(self, device: str, used: list[int]) -> tuple[float | None, str]:
        if not used:
            return None, "no GPU was used"
        now = device_counters()
        cuda = cuda_of_this_step(device)
        names = [str(cuda.get_device_properties(index).uuid).removeprefix("GPU-") for index in used]
        missing = [name for name in names if name not in now or name not in self._devices]
        if missing:
            return None, "the driver counts no energy of this device"
        return sum(now[name] - self._devices[name] for name in names), ""


def cuda_of_this_step(device: str) -> Any:
    """torch.cuda where this step has used it, else None; torch is never imported here."""
    torch = sys.modules.get("torch")
    used = torch is not None and device.startswith("cuda") and torch.cuda.is_initialized()
    return torch.cuda if torch is not None and used else None


def used_devices(device: str) -> list[int]:
    """Indices of the GPUs on which this process has put anything."""
    cuda = cuda_of_this_step(device)
    return [] if cuda is None else [i for i in range(cuda.device_count()) if cuda.max_memory_allocated(i) > 0]


def over_processes(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Sums over the processes of the job; None where one of them has None."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return dict(values)
    here = [math.nan if value is None else float(value) for value in values.values()]
    total = torch.tensor(here, dtype=torch.float64)
    torch.distributed.all_reduce(total)
    return {name: None if math.isnan(v) else v for name, v in zip(values, total.tolist(), strict=True)}


def device_counters() -> dict[str, float]:
    """Joules since the driver was loaded, by the UUID of each NVIDIA device that counts them (Volta and later).

    Empty without an NVIDIA driver.
    """
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return {}
    count, found = ctypes.c_uint(), {}
    if nvml.nvmlInit_v2() != 0:
        return {}
    if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0:
        for index in range(count.value):
            handle, uuid = ctypes.c_void_p(), ctypes.create_string_buffer(UUID_LENGTH)
            energy = ctypes.c_ulonglong()  # millijoules
            if (
                nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)) == 0
                and nvml.nvmlDeviceGetUUID(handle, uuid, ctypes.c_uint(UUID_LENGTH)) == 0
                and nvml.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(energy)) == 0
            ):
                found[uuid.value.decode().removeprefix("GPU-")] = energy.value / 1000
    nvml.nvmlShutdown()
    return found


class HostEnergy:
    """Joules of the machine's processors and their memory, by RAPL: packages, and DRAM where it counts apart.

    The counters are small and come round; a thread reads them once a minute, so that no round is missed.

    Args:
        root: where the kernel shows them.
    """

    def __init__(self, root: Path = POWERCAP) -> None:
        self._lock, self._total = threading.Lock(), 0
        self._missing = "the kernel shows no RAPL counters"
        self._ranges: dict[Path, int] = {}
        self._last: dict[Path, int] = {}
        for domain in sorted(root.glob("intel-rapl:*")):  # AMD's too; intel-rapl-mmio counts the same a second time
            try:
                name = (domain / "name").read_text(encoding="ascii").strip()
                if not name.startswith("package") and name != "dram":
                    continue
                self._last[domain] = _number(domain / "energy_uj")
                self._ranges[domain] = _number(domain / "max_energy_range_uj")
            except OSError:  # most systems let only the administrator read them
                self._missing, self._last = "the RAPL counters are not readable for this user", {}
                break
        if self._last:
            threading.Thread(target=self._watch, name="energy", daemon=True).start()

    def joules(self) -> tuple[float | None, str]:
        """Since it was made; or None and why."""
        if not self._last:
            return None, self._missing
        self.sample()
        return self._total / 1e6, ""

    def sample(self) -> None:
        """Add what the counters have moved since the last call; one that stands lower than before has come round."""
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
    """Resources of a step that was interrupted and went on: seconds and joules are added, peaks compared."""
    both = {name: _together(earlier[name], last[name], add=True) for name in SUMS}
    both |= {name: _together(earlier[name], last[name], add=False) for name in PEAKS}
    energy = {
        name: _together(earlier["energy_joules"][name], value, add=True)
        for name, value in last["energy_joules"].items()
    }
    missing = {**earlier["energy_missing"], **last["energy_missing"]}
    return {**last, **both, "energy_joules": energy, "energy_missing": missing}


def _together(one: float | None, two: float | None, *, add: bool) -> float | None:
    if one is None or two is None:
        return None if add else one if two is None else two
    return round(one + two, 3) if add else max(one, two)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _number(path: Path) -> int:
    return int(path.read_text(encoding="ascii"))
