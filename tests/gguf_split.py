"""llama.cpp's gguf-split, built from the sources that llama-cpp-python carries. Tests that need it skip without.

The program wants ggml's base, and of llama.cpp the names of three keys and two functions about names of files. Those
are cut out of its source, and its headers are replaced, so that neither cmake nor the rest of llama.cpp is needed.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

PACKAGE, VERSION = "llama-cpp-python", "0.3.36"

C = [f"ggml/src/{name}.c" for name in ("ggml", "ggml-alloc", "ggml-quants")]
CPP = [
    *(f"ggml/src/{name}.cpp" for name in ("ggml", "gguf", "ggml-backend", "ggml-backend-meta", "ggml-threading")),
    "tools/gguf-split/gguf-split.cpp",
]
CUT = {
    "common/common.h": r"^const char \* const LLM_KV_SPLIT_.*$",
    "src/llama.cpp": r"^int32_t llama_split_(?:.|\n)*?^}$",
}
"""File → what the program uses of it."""

NEEDED = re.compile("|".join([*map(re.escape, [*C, *CPP, *CUT]), r"ggml/(include|src|src/ggml-cpu)/[^/]+\.h"]))
OPTIONS = ["-O0", "-w", "-D_GNU_SOURCE", "-I.", "-Iggml/include", "-Iggml/src"]
HEADERS = {
    "ggml-version.h": '#define GGML_VERSION ""\n#define GGML_COMMIT ""\n',
    "build-info.h": "",
    "common.h": "",
    "llama.h": """
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
static int llama_build_number() { return 0; }
static const char * llama_version() { return ""; }
static const char * llama_commit() { return ""; }
static const char * llama_compiler() { return ""; }
static const char * llama_build_target() { return ""; }
""",
}
"""Ours in place of those that the program includes; what is cut out comes behind the last."""


def built(cache: Path) -> Path:
    """The program. Where the folder does not have it and all tests are asked for, one of the processes makes it.

    Nobody who just runs the tests is made to fetch and compile it. The calling test skips then, and where there is no
    compiler, or pip gets no sources.
    """
    fcntl = pytest.importorskip("fcntl", reason="this system has no such locks")
    program = cache / f"gguf-split-{VERSION}"
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            if not os.environ.get("GGUF_SCHEMA_ALL_TESTS"):
                pytest.skip("could not import gguf-split: GGUF_SCHEMA_ALL_TESTS=1 builds it, once")
            with tempfile.TemporaryDirectory(dir=cache) as folder:
                os.replace(_make(Path(folder)), program)
    return program


def _make(folder: Path) -> Path:
    c, cpp = shutil.which("cc"), shutil.which("c++")
    if c is None or cpp is None:
        pytest.skip("could not import gguf-split: there is no C++ compiler")
    _fetch(folder)
    cut = [part for file, wanted in CUT.items() for part in re.findall(wanted, (folder / file).read_text(), re.M)]
    for name, text in HEADERS.items():
        (folder / name).write_text(text)
    with open(folder / "llama.h", "a") as file:
        file.write("\n".join(cut))
    objects = [f"{Path(source).stem}.o" for source in C]
    for command in (
        [c, *OPTIONS, "-c", *C],
        [cpp, *OPTIONS, *CPP, *objects, "-o", "program", "-lm", "-lpthread", "-ldl"],
    ):
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
    return folder / "program"


def _fetch(folder: Path) -> None:
    """Put what is needed of the sources there."""
    wanted = [PACKAGE, f"{PACKAGE}=={VERSION}", "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", *wanted]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        pytest.skip(f"could not import gguf-split: pip download {PACKAGE}: {run.stderr.strip().splitlines()[-1]}")
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        for member in archive:
            path = member.name.partition("/vendor/llama.cpp/")[2]
            if NEEDED.fullmatch(path) and (file := archive.extractfile(member)):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(file.read())
