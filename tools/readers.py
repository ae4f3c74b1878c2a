"""Other readers of GGUF, each in a process of its own that reads one file after the other, fast. For Linux.

`running` starts a reader and gives what it makes of bytes. Its process loads the reader once and forks; the child reads
files from memory until it dies of one, or hangs; then another goes on. What came of a file is an `Outcome`, as of
commands that `gguf-schema fuzz` runs, with one kind more: raised, where a Python reader raises what it does not mean to
(no ValueError, or an error in decoding), which is a fault of it, and a refusal, too.
"""

import contextlib
import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from gguf_schema.fuzz.running import KEPT, MEMORY, Limits, Outcome, located, outcome

ROOT = Path(__file__).parents[1]

LIMITS = Limits(2.0, 512)
"""What a file may take."""

FILES = 1000
"""Files that a child reads before another takes its place: what one leaves behind should not matter."""

HEAD = 8
"""Bytes of a request that tell how many follow."""

FOLDERS = re.compile(r"\S*/")
"""Of the place of a crash in C: where the reader was compiled."""

DONE, RENEW = 64, 65
"""Exit statuses of a child: there are no more files, or it has read its share."""

Read = Callable[[str], dict[str, Any] | None]
"""Reads a file: what is seen there, with the number of `pairs` and the names of `tensors`; None where it is refused."""


class Reader(NamedTuple):
    """A reader that may be installed.

    Attributes:
        package: The Python package that it is in.
        load: Loads it.
        profile: The profile that says what it should do.
    """

    package: str
    load: Callable[[], Read]
    profile: str

    @property
    def is_installed(self) -> bool:
        """Whether it is, and can be run here."""
        return find_spec(self.package) is not None and hasattr(os, "memfd_create")


class Params(ctypes.Structure):
    """gguf.h's struct gguf_init_params."""

    _fields_ = (("no_alloc", ctypes.c_bool), ("ctx", ctypes.POINTER(ctypes.c_void_p)))


def llama_cpp(with_data: bool = False) -> Read:
    """llama.cpp's gguf_init_from_file, as ggml-python has it."""
    import ggml

    (path,) = Path(ggml.__file__).parent.glob("lib/libggml-base.*")
    library = ctypes.CDLL(str(path))
    library.gguf_init_from_file.restype = ctypes.c_void_p
    library.gguf_init_from_file.argtypes = [ctypes.c_char_p, Params]
    for name in ("gguf_free", "ggml_free", "gguf_get_n_kv", "gguf_get_n_tensors", "gguf_get_tensor_name"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    for name in ("gguf_get_n_kv", "gguf_get_n_tensors"):
        getattr(library, name).restype = ctypes.c_int64
    library.gguf_get_tensor_name.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    library.gguf_get_tensor_name.restype = ctypes.c_char_p

    def read(path: str) -> dict[str, Any] | None:
        held = ctypes.c_void_p()
        opened = library.gguf_init_from_file(path.encode(), Params(not with_data, ctypes.pointer(held)))
        if not opened:
            return None
        try:
            names = [library.gguf_get_tensor_name(opened, index) for index in range(library.gguf_get_n_tensors(opened))]
            return {
                "pairs": library.gguf_get_n_kv(opened),
                "tensors": [name.decode("utf-8", "backslashreplace") for name in names],
            }
        finally:
            library.gguf_free(opened)
            library.ggml_free(held)

    return read


def llama_cpp_data() -> Read:
    """The same, with tensor data."""
    return llama_cpp(with_data=True)


def gguf_py() -> Read:
    """gguf-py's GGUFReader."""
    from gguf import GGUFReader

    def read(path: str) -> dict[str, Any] | None:
        reader = GGUFReader(path)
        virtual = sum(name.startswith("GGUF.") and field.offset < 24 for name, field in reader.fields.items())
        return {"pairs": len(reader.fields) - virtual, "tensors": [tensor.name for tensor in reader.tensors]}

    return read


READERS = {
    "llama.cpp": Reader("ggml", llama_cpp, "llama.cpp"),
    "llama.cpp-data": Reader("ggml", llama_cpp_data, "llama.cpp-data"),
    "gguf-py": Reader("gguf", gguf_py, "gguf-py"),
}
"""Name → reader."""


class Running:
    """A reader in its process. What it says on stderr is kept from people, and looked at where it dies."""

    def __init__(self, name: str, limits: Limits = LIMITS) -> None:
        command = [sys.executable, "-m", "tools.readers", name, json.dumps(limits)]
        settings = {**os.environ, "GGML_NO_BACKTRACE": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )

    def read(self, data: bytes) -> Outcome:
        """What it does with a file; of one that it accepts `told` is what it sees there, as JSON (see `Read`)."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(len(data).to_bytes(HEAD, "little") + data)
        self.process.stdin.flush()
        return Outcome(*json.loads(self.process.stdout.readline()))

    def close(self) -> None:
        """End it, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@contextlib.contextmanager
def running(name: str, limits: Limits = LIMITS) -> Iterator[Running]:
    """A reader of READERS, started, and at the end gone.

    Args:
        name: Which.
        limits: What a file may take.
    """
    made = Running(name, limits)
    try:
        yield made
    finally:
        made.close()


def serve(name: str, limits: Limits) -> None:
    """The reader's process: requests on stdin, a line on stdout for each."""
    read = READERS[name].load()
    told = os.memfd_create("stderr")
    while True:
        child = os.fork()
        if not child:
            os.dup2(os.open(f"/proc/self/fd/{told}", os.O_WRONLY | os.O_APPEND), 2)
            try:
                os._exit(_answer(read, limits, told))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == DONE:
            return
        if code != RENEW:
            size = os.fstat(told).st_size
            said = os.pread(told, KEPT, max(0, size - KEPT)).decode("utf-8", "replace")
            made = Outcome("hang") if code == -signal.SIGALRM else outcome(code, said)
            _reply(made._replace(detail=FOLDERS.sub("", made.detail)))


def _answer(read: Read, limits: Limits, told: int) -> int:
    """The child: answer requests; the exit status is returned."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (limits.memory << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    file = os.memfd_create("file.gguf")
    for _ in range(FILES):
        head = os.read(0, HEAD)
        if not head:
            return DONE
        size = int.from_bytes(head, "little")
        os.ftruncate(file, 0)
        os.ftruncate(told, 0)
        place = 0
        while place < size:
            place += os.pwrite(file, os.read(0, size - place), place)
        signal.setitimer(signal.ITIMER_REAL, limits.timeout)
        made = _tried(read, f"/proc/self/fd/{file}")
        signal.setitimer(signal.ITIMER_REAL, 0)
        _reply(made)
    return RENEW


def _tried(read: Read, path: str) -> Outcome:
    """What comes of a file, if the process lives."""
    try:
        seen = read(path)
    except Exception as error:
        if isinstance(error, ValueError) and not isinstance(error, UnicodeError):
            return Outcome("reject", told=str(error))
        said = "".join(traceback.format_exception(error))
        return Outcome("memory" if MEMORY.search(said) else "raised", located(said), True, said[-KEPT:])
    return Outcome("reject") if seen is None else Outcome("accept", told=json.dumps(seen))


def _reply(made: Outcome) -> None:
    line = json.dumps(made).encode() + b"\n"
    while line:
        line = line[os.write(1, line) :]


if __name__ == "__main__":
    serve(sys.argv[1], Limits(*json.loads(sys.argv[2])))
