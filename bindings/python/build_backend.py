"""Builds the wheel: the package, the library as CMake makes it, and the headers, which the constants come from.

It needs CMake and a C compiler, and no other Python package.
"""

import base64
import hashlib
import os
import subprocess
import sysconfig
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
NAME, VERSION = "qdnn", "0.1.0"
INFO = f"{NAME}-{VERSION}.dist-info"


def build_library(folder):
    """Builds libqdnn.so in a folder; its path."""
    options = ["-DQDNN_BUILD_TESTS=OFF", "-DQDNN_BUILD_BENCH=OFF"]
    subprocess.run(["cmake", "-S", str(SOURCE), "-B", str(folder), *options], check=True)
    jobs = str(os.cpu_count() or 1)
    subprocess.run(["cmake", "--build", str(folder), "--target", "qdnn", "-j", jobs], check=True)
    return (Path(folder) / "libqdnn.so").resolve()


def contents(library):
    """What the wheel holds: (name in it, bytes)."""
    for path in sorted((HERE / "qdnn").glob("*.py")):
        yield f"qdnn/{path.name}", path.read_bytes()
    for path in sorted((SOURCE / "include" / "qdnn").glob("*.h")):
        yield f"qdnn/include/{path.name}", path.read_bytes()
    yield "qdnn/libqdnn.so", library.read_bytes()
    yield f"{INFO}/METADATA", (
        f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\nRequires-Dist: numpy\n"
    ).encode()
    yield f"{INFO}/LICENSE", (SOURCE / "LICENSE").read_bytes()


def platform_tag():
    return "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    tag = platform_tag()
    file_name = f"{NAME}-{VERSION}-{tag}.whl"
    record = []
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(
        Path(wheel_directory) / file_name, "w", zipfile.ZIP_DEFLATED
    ) as wheel:
        wheel_info = f"Wheel-Version: 1.0\nGenerator: qdnn\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
        for name, data in [*contents(build_library(folder)), (f"{INFO}/WHEEL", wheel_info)]:
            wheel.writestr(name, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")
        record.append(f"{INFO}/RECORD,,")
        wheel.writestr(f"{INFO}/RECORD", "\n".join(record) + "\n")
    return file_name


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("the library is built from the project's own checkout; there is no source distribution")
