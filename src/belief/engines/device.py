"""Which device does the work: the CPU's engines, or one or several GPUs.

torch takes seconds to import, so "auto" asks for it only where it is installed and the work is worth it.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

from belief._utils.optional import import_optional

WORTH = 5e12  # multiplications of a search, about 10 s of 16 cores; torch and its kernels take some seconds to start
ALLOWED = "'auto', 'cpu', 'cuda', one GPU such as 'cuda:1', or several such as 'cuda:0,1'"
PLAIN = "torch-cpu"  # the GPU's engine on torch's CPU device: for tests


def check_device(device: Any) -> None:
    """Refuse what is no name of a device."""
    named = isinstance(device, str) and re.fullmatch(rf"auto|cpu|cuda(:\d+(,\d+)*)?|{PLAIN}(,{PLAIN})*", device)
    if not named:
        raise ValueError(f"device must be {ALLOWED}; got {device!r}.")


def devices_for(device: str, multiplications: float) -> list[str]:
    """The torch devices to work on, by name; none: the CPU's engines do.

    Parameters
    ----------
    device : as the user says it
    multiplications : of the search, queries x rows x features; for "auto"
    """
    check_device(device)
    if device == "cpu" or (device == "auto" and not (multiplications >= WORTH and _sees_gpu())):
        return []
    if device.startswith(PLAIN):
        import_optional("torch", "gpu")
        return ["cpu"] * len(device.split(","))
    names = ["cuda:0"] if device in ("auto", "cuda") else [f"cuda:{i}" for i in device[5:].split(",")]
    if device != "auto":
        _check_gpus(device, names)
    return names


def _sees_gpu() -> bool:
    """Whether torch is installed, works, and has a GPU."""
    if find_spec("torch") is None:
        return False
    try:
        return bool(import_optional("torch", "gpu").cuda.is_available())
    except (ImportError, OSError):  # installed, but not for this machine
        return False


def _check_gpus(device: str, names: list[str]) -> None:
    torch = import_optional("torch", "gpu")
    if not torch.cuda.is_available():
        built = "sees none: is there one, with a driver that fits?" if torch.version.cuda else "was built without CUDA."
        raise ValueError(f"device={device!r} needs an NVIDIA GPU, but torch {torch.__version__} {built} Or use 'cpu'.")
    there = torch.cuda.device_count()
    missing = [name for name in names if int(name[5:]) >= there]
    if missing:
        raise ValueError(f"device={device!r}: there is no {missing[0]}; torch sees {there} GPUs, from cuda:0 on.")
