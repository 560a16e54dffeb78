"""Install a lock of envs/ into the environment of this Python: every file has a SHA-256 that the lock names.

    python envs/install.py dev        # or cpu, cuda

torch comes first and by itself. The pin `torch==<version>` is met by a small CPU build where an index or a folder
offers one, and by the CUDA build elsewhere. pip passes the small build by when it is told to require hashes, because
the page that offers it says no hash. So the file is fetched, its SHA-256 is looked up in the lock, and then it is
installed. The CUDA build gets the CUDA libraries of cuda.txt.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ENVS = Path(__file__).parent
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def torch_pin() -> tuple[str, set[str]]:
    """Version of torch in the lock, and the SHA-256 of every file of it."""
    entry = re.search(r"^torch==(\S+) \\\n((?:    --hash=.*\n)+)", (ENVS / "cpu.txt").read_text("utf-8"), re.MULTILINE)
    if entry is None:
        sys.exit("envs/cpu.txt: expected a pin of torch with hashes, got none. Run `make lock`.")
    return entry[1], set(re.findall(r"sha256:(\w{64})", entry[2]))


def install_torch(pin: str, hashes: set[str]) -> None:
    """Fetch torch as the index gives it, compare its SHA-256 with the lock, install it without what it asks for."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*PIP, "download", "--no-deps", "--dest", folder, f"torch=={pin}"], check=True)
        (wheel,) = Path(folder).iterdir()
        with wheel.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest not in hashes:
            sys.exit(
                f"{wheel.name}: expected a SHA-256 of envs/cpu.txt, got {digest}. The index offers a build that the "
                "lock does not know. If you trust it, add its SHA-256 to envs/torch-cpu.sha256 and run `make lock`."
            )
        subprocess.run([*PIP, "install", "--no-deps", str(wheel)], check=True)


def main(lock: str) -> None:
    pin, hashes = torch_pin()
    try:
        installed = version("torch")
    except PackageNotFoundError:
        installed = ""
    if installed.partition("+")[0] != pin:
        install_torch(pin, hashes)
        installed = version("torch")
    needs_cuda = sys.platform == "linux" and not installed.endswith("+cpu")
    for name in dict.fromkeys([lock, *(["cuda"] if needs_cuda else [])]):
        install = [*PIP, "install", "--no-deps", "--require-hashes", "-r", str(ENVS / f"{name}.txt")]
        subprocess.run(install, check=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
