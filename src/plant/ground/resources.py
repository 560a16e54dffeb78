"""The resources of a step: seconds, memory and energy, summed over its processes and its attempts."""

from __future__ import annotations

import ctypes
import math
import resource
import sys
import time
from collections.abc import Mapping
from typing import Any

MB = 1e6
UUID_LENGTH = 96  # NVML_DEVICE_UUID_V2_BUFFER_SIZE
SUMS = ("wall_seconds", "cpu_seconds")
PEAKS = ("peak_host_mb", "peak_device_mb")


class Meter:
    """A clock and the energy counters of GPUs. They start when the object is made, at `time.time()` = `started`.

    The energy is that of whole devices during the step. It is an upper bound if other programs use them too.
    """

    def __init__(self) -> None:
        self.started = time.time()
        self._devices = device_counters()

    def read(self, device: str) -> dict[str, Any]:
        """Resources used so far, summed over the processes of the job. All processes must call it.

        Args:
            device: the device that did the work, as torch names it.

        Returns:
            wall_seconds; cpu_seconds; peak_host_mb; peak_device_mb (None without a GPU); devices, the number of GPUs;
            processes; energy_joules, {"device": J}; energy_missing, {"device": reason} if it is None.
        """
        own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss: bytes on macOS, KiB on Linux
        cuda = cuda_of_this_step(device)
        gpus = [] if cuda is None else [i for i in range(cuda.device_count()) if cuda.max_memory_allocated(i) > 0]
        on_devices, reason = self._device_joules(cuda, gpus)
        total = over_processes({
            "cpu_seconds": own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
            "peak_host_mb": max(own.ru_maxrss, children.ru_maxrss) * unit / MB,
            "peak_device_mb": sum(cuda.max_memory_allocated(i) for i in gpus) / MB if gpus else None,
            "devices": len(gpus),
            "processes": 1,
            "device": on_devices,
        })  # fmt: skip
        joules = _rounded(total["device"], 1)
        return {
            "wall_seconds": round(time.time() - self.started, 3),
            "cpu_seconds": _rounded(total["cpu_seconds"], 3),
            **{name: _rounded(total[name], 1) for name in PEAKS},
            **{name: int(total[name] or 0) for name in ("devices", "processes")},
            "energy_joules": {"device": joules},
            "energy_missing": {"device": reason} if joules is None else {},
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
