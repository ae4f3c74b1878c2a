"""The process of a reader (see `readers`): it loads little, because each file that ends a child costs a fork."""

import ctypes
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FILES = 1000
"""Files that a child reads before another takes its place: what one leaves behind should not matter."""

HEAD = 8
"""Bytes of a request that tell how many follow."""

KEPT = 1 << 16
"""Bytes kept of the end of what is said on stderr."""

STALLED = 300
"""So many times the seconds of the processor that a file may take, a child waits by the clock."""

DONE, RENEW = 64, 65
"""Exit statuses of a child: there are no more files, or it has read its share."""

VIRTUAL = 3
"""Fields that gguf-py has besides the pairs."""

Seen = dict[str, Any]
"""What is seen in a file: the number of `pairs`, and the names of `tensors`."""

Read = Callable[[str], Seen | None]
"""Reads a file; None where it is refused."""


class Params(ctypes.Structure):
    """gguf.h's struct gguf_init_params."""

    _fields_ = (("no_alloc", ctypes.c_bool), ("ctx", ctypes.POINTER(ctypes.c_void_p)))


def llama_cpp(with_data: bool = False) -> Read:
    """llama.cpp's gguf_init_from_file, as ggml-python has it."""
    package = find_spec("ggml")
    assert package is not None
    assert package.origin is not None
    (path,) = Path(package.origin).parent.glob("lib/libggml-base.*")
    library = ctypes.CDLL(str(path))
    library.gguf_init_from_file.restype = ctypes.c_void_p
    library.gguf_init_from_file.argtypes = [ctypes.c_char_p, Params]
    for name in ("gguf_free", "ggml_free", "gguf_get_n_kv", "gguf_get_n_tensors", "gguf_get_tensor_name"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    for name in ("gguf_get_n_kv", "gguf_get_n_tensors"):
        getattr(library, name).restype = ctypes.c_int64
    library.gguf_get_tensor_name.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    library.gguf_get_tensor_name.restype = ctypes.c_char_p

    def read(path: str) -> Seen | None:
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

    def read(path: str) -> Seen | None:
        reader = GGUFReader(path)
        return {"pairs": len(reader.fields) - VIRTUAL, "tensors": [tensor.name for tensor in reader.tensors]}

    return read


LOAD: dict[str, Callable[[], Read]] = {
    "llama.cpp": llama_cpp,
    "llama.cpp-data": llama_cpp_data,
    "gguf-py": gguf_py,
}
"""Reader → loads it."""


def serve(name: str, timeout: float, memory: int) -> None:
    """The reader's process: requests on stdin, on stdout a line for each, with a word and what belongs to it.

    The word is accept (what is seen), reject (the message), raised (the traceback), or died (the exit status as
    `subprocess` has it, and what was said on stderr).

    Args:
        name: The reader.
        timeout: Seconds of the processor that a file may take.
        memory: MiB of memory that the reading of files may take.
    """
    read = LOAD[name]()
    told = os.memfd_create("stderr")
    while True:
        child = os.fork()
        if not child:
            os.dup2(os.open(f"/proc/self/fd/{told}", os.O_WRONLY | os.O_APPEND), 2)
            try:
                os._exit(_answer(read, timeout, memory, told))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == DONE:
            return
        if code != RENEW:
            size = os.fstat(told).st_size
            _reply("died", code, os.pread(told, KEPT, max(0, size - KEPT)).decode("utf-8", "replace"))


def _answer(read: Read, timeout: float, memory: int, told: int) -> int:
    """The child: answer requests; the exit status is returned."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (memory << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
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
        _limit(timeout)
        made = _tried(read, f"/proc/self/fd/{file}")
        _limit(0)
        _reply(*made)
    return RENEW


def _limit(seconds: float) -> None:
    """Die of SIGPROF after so many seconds of the processor, of SIGALRM after many more by the clock; 0 is never."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, seconds * STALLED)


def _tried(read: Read, path: str) -> tuple[Any, ...]:
    """What comes of a file, if the process lives."""
    try:
        seen = read(path)
    except Exception as error:
        if isinstance(error, ValueError) and not isinstance(error, UnicodeError):
            return "reject", str(error)
        return "raised", "".join(traceback.format_exception(error))[-KEPT:]
    return ("reject", "") if seen is None else ("accept", seen)


def _reply(*made: Any) -> None:
    line = json.dumps(made).encode() + b"\n"
    while line:
        line = line[os.write(1, line) :]


if __name__ == "__main__":
    serve(sys.argv[1], *json.loads(sys.argv[2]))
