"""Builds the wheel: the package, the library as CMake makes it, and the headers, which the constants come from; and the source
distribution, which is the project's own files under the package's.

It needs CMake and a C compiler, and no other Python package.
"""

import base64
import hashlib
import io
import os
import re
import subprocess
import sysconfig
import tarfile
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
NAME = "qdnn"
VERSION = re.search(r'^version = "(.*)"', (HERE / "pyproject.toml").read_text(), re.M).group(1)
INFO = f"{NAME}-{VERSION}.dist-info"


def build_libraries(folder):
    """Builds libqdnn.so and libqdnn_files.so in a folder; their paths."""
    options = ["-DQDNN_BUILD_TESTS=OFF", "-DQDNN_BUILD_BENCH=OFF"]
    subprocess.run(["cmake", "-S", str(SOURCE), "-B", str(folder), *options], check=True)
    jobs = str(os.cpu_count() or 1)
    print("building the libraries; pip shows the progress with -v", flush=True)
    subprocess.run(["cmake", "--build", str(folder), "--target", "qdnn", "qdnn_files_shared", "-j", jobs], check=True)
    return [(Path(folder) / name).resolve() for name in ("libqdnn.so", "libqdnn_files.so")]


def metadata():
    """What pip and an index show."""
    text = (HERE / "pyproject.toml").read_text()
    field = lambda name: re.search(rf'^{name} = "(.*)"', text, re.M).group(1)
    head = [
        "Metadata-Version: 2.1", f"Name: {NAME}", f"Version: {VERSION}", f"Summary: {field('description')}",
        "License: Apache-2.0", "Classifier: License :: OSI Approved :: Apache Software License",
        "Classifier: Programming Language :: C", "Classifier: Programming Language :: Python :: 3",
        f"Requires-Python: {field('requires-python')}", "Requires-Dist: numpy", "Description-Content-Type: text/markdown",
    ]  # fmt: skip
    return ("\n".join(head) + "\n\n" + (HERE / "README.md").read_text()).encode()


def contents(libraries):
    """What the wheel holds: (name in it, bytes)."""
    for path in sorted([*(HERE / "qdnn").glob("*.py"), HERE / "qdnn" / "py.typed"]):
        yield f"qdnn/{path.name}", path.read_bytes()
    for path in sorted((SOURCE / "include" / "qdnn").glob("*.h")):
        yield f"qdnn/include/{path.name}", path.read_bytes()
    for library in libraries:
        yield f"qdnn/{library.name.split('.so')[0]}.so", library.read_bytes()
    yield f"{INFO}/METADATA", metadata()
    yield f"{INFO}/LICENSE", (SOURCE / "LICENSE").read_bytes()


def newest_glibc(libraries):
    """The newest version of glibc whose symbols they ask for."""
    versions = [found for library in libraries for found in re.findall(rb"GLIBC_(\d+)\.(\d+)", library.read_bytes())]
    return max((int(major), int(minor)) for major, minor in versions)


def platform_tag(libraries):
    """A manylinux tag, as the libraries depend on glibc alone; the platform's own where that is another system."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if platform.startswith("linux_"):
        platform = "manylinux_{}_{}".format(*newest_glibc(libraries)) + platform[len("linux") :]
    return "py3-none-" + platform


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = Path(metadata_directory) / INFO
    folder.mkdir()
    (folder / "METADATA").write_bytes(metadata())
    return INFO


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    record = []
    with tempfile.TemporaryDirectory() as folder:
        libraries = build_libraries(folder)
        tag = platform_tag(libraries)
        file_name = f"{NAME}-{VERSION}-{tag}.whl"
        wheel_info = f"Wheel-Version: 1.0\nGenerator: qdnn\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
        with zipfile.ZipFile(Path(wheel_directory) / file_name, "w", zipfile.ZIP_DEFLATED) as wheel:
            for name, data in [*contents(libraries), (f"{INFO}/WHEEL", wheel_info)]:
                wheel.writestr(name, data)
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                record.append(f"{name},sha256={digest},{len(data)}")
            record.append(f"{INFO}/RECORD,,")
            wheel.writestr(f"{INFO}/RECORD", "\n".join(record) + "\n")
    return file_name


def source_files():
    """What the library is built from, and the package: the checkout without tests, benchmarks and folders of builds."""
    yield from (SOURCE / name for name in ("CMakeLists.txt", "LICENSE", "README.md", "CHANGELOG.md"))
    for folder in sorted(path for path in SOURCE.iterdir() if path.is_dir()):
        if folder.name.startswith(".") or folder.name in ("tests", "bench") or (folder / "CMakeCache.txt").exists():
            continue
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not {"__pycache__", "build"} & set(path.relative_to(SOURCE).parts):
                yield path


def build_sdist(sdist_directory, config_settings=None):
    """The checkout's sources, and at the top a pyproject.toml that points at the package below."""
    root = f"{NAME}-{VERSION}"
    project = (HERE / "pyproject.toml").read_text().replace('backend-path = ["."]', 'backend-path = ["bindings/python"]')
    project = project.replace('readme = "README.md"', 'readme = "bindings/python/README.md"')
    with tarfile.open(Path(sdist_directory) / f"{root}.tar.gz", "w:gz") as archive:
        for path in source_files():
            archive.add(path, f"{root}/{path.relative_to(SOURCE)}", recursive=False)
        for name, data in (("pyproject.toml", project.encode()), ("PKG-INFO", metadata())):
            entry = tarfile.TarInfo(f"{root}/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return f"{root}.tar.gz"
