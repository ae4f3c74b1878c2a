"""gguf.h, compiled as C and C++ without a warning: it lays the file out as it is, and lives beside ggml's headers."""

import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import gguf_schema as gs
from gguf_schema.blocks import block_sizes
from gguf_schema.demo import demo_model
from gguf_schema.enums import LlamaFileType, TokenType
from gguf_schema.export import EXPORTS

from .shared import corpus_files, needs_corpus

ORDER = {"little": "<", "big": ">"}[sys.byteorder]
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
COMPILERS = [
    [compiler, f"-std={standard}", "-x", language]
    for language, compilers, standards in [
        ("c", ("gcc", "clang"), ("c11", "c17")),
        ("c++", ("g++", "clang++"), ("c++11", "c++20")),
    ]
    for compiler in compilers
    for standard in standards
    if shutil.which(compiler)
]
ENUMS = {
    "GGUF_VALUE_TYPE": gs.GGUFValueType,
    "GGUF_GGML_TYPE": gs.GGMLQuantizationType,
    "GGUF_LLAMA_FTYPE": LlamaFileType,
    "GGUF_LLAMA_TOKEN_TYPE": TokenType,
}
SIZES = ("block", "type")
READER = """
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "ours.h"

#define READ(to) if (fread(&to, sizeof(to), 1, file) != 1) return 2

#define REST(version) { \\
    gguf_header_v##version header; \\
    gguf_length_v##version length; \\
    READ(header); \\
    READ(length); \\
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\\n", (uint64_t)header.tensor_count, \\
           (uint64_t)header.metadata_kv_count, (uint64_t)length); \\
}

int main(int count, char **arguments) {
    FILE *file = fopen(arguments[count - 1], "rb");
    gguf_preamble preamble;
    READ(preamble);
    if (memcmp(preamble.magic, GGUF_FILE_MAGIC, sizeof(preamble.magic)) != 0) return 3;
    rewind(file);
    printf("%" PRIu32 " ", preamble.version);
    switch (preamble.version) {
        case 1: REST(1) break;
        case 2: REST(2) break;
        case GGUF_LATEST_VERSION: REST(3) break;
    }
    return fclose(file);
}
"""

pytestmark = pytest.mark.skipif(not COMPILERS, reason="no C compiler is here")
each_compiler = pytest.mark.parametrize("compiler", COMPILERS, ids=lambda command: f"{command[0]} {command[1]}")


def compiled(compiler: list[str], source: str, folder: Path, *options: str) -> Path:
    """A program from a source that includes "ours.h"."""
    (folder / "ours.h").write_text(EXPORTS["gguf.h"](), "utf-8")
    (folder / "source").write_text(source, "utf-8")
    program = folder / "program"
    run = subprocess.run(
        [*compiler, *STRICT, *options, "-o", program, folder / "source"], capture_output=True, encoding="utf-8"
    )
    assert run.returncode == 0, run.stderr
    return program


def output(program: Path, *arguments: Path) -> list[str]:
    """The words that a program prints."""
    return subprocess.run([program, *arguments], capture_output=True, encoding="utf-8", check=True).stdout.split()


def file_of(version: int) -> bytes:
    """A file in the byte order of this machine."""
    pairs = [{"key": "k" * (40 + version), "value_type": 0, "value": 1}, {"key": "l", "value_type": 0, "value": 1}]
    infos = [{"name": str(n), "dimensions": [1], "type": 0, "offset": 0} for n in range(3)]
    return gs.GGUF.build({"order": ORDER, "version": version, "metadata_kv": pairs, "tensor_infos": infos})


@each_compiler
def test_reads_the_start_of_a_file(compiler, tmp_path):
    program = compiled(compiler, READER, tmp_path)
    for version in (1, 2, 3):
        (tmp_path / "file").write_bytes(file_of(version))
        assert output(program, tmp_path / "file") == [str(version), "3", "2", str(40 + version)]
    if ORDER == "<":
        demo = gs.GGUF.parse(demo_model())
        (tmp_path / "file").write_bytes(demo_model())
        found = [demo.version, demo.tensor_count, demo.metadata_kv_count, len(demo.metadata_kv[0].key)]
        assert output(program, tmp_path / "file") == list(map(str, found))


@needs_corpus
@pytest.mark.skipif(ORDER == ">", reason="the corpus is little-endian")
def test_reads_the_start_of_real_files(tmp_path):
    program = compiled(COMPILERS[0], READER, tmp_path)
    for path in corpus_files("*.gguf"):
        with gs.open(path) as model:
            key = model.metadata.pairs[0].key
            found = [model.version, len(model.tensors), len(model.metadata.pairs), len(key.encode())]
        assert output(program, path) == list(map(str, found))


@each_compiler
def test_enumerators_and_sizes(compiler, tmp_path):
    """Every name has its number, and every id its sizes."""
    numbers = {f"{prefix}_{member.name}": int(member) for prefix, enum in ENUMS.items() for member in enum}
    ids = range(100)
    printed = [*numbers, "GGUF_ALIGNMENT_DEFAULT", *(f"gguf_ggml_{size}_size({id})" for id in ids for size in SIZES)]
    lines = "".join(f'    printf("%d\\n", (int){expression});\n' for expression in printed)
    source = f'#include <stdio.h>\n#include "ours.h"\nint main(void) {{\n{lines}}}\n'
    wanted = [*numbers.values(), 32, *(size for id in ids for size in block_sizes().get(id, (0, 0)))]
    assert output(compiled(compiler, source, tmp_path)) == list(map(str, wanted))


def test_fields_of_a_block(tmp_path):
    """A Q4_1 block by ggml-common.h: two ggml_half, then nibbles."""
    source = """
        #include <stdio.h>
        #include <string.h>
        #include "ours.h"
        int main(void) {
            const unsigned char bytes[20] = {0x34, 0x12, 0x78, 0x56, 0xab};
            gguf_block_q4_1 block;
            memcpy(&block, bytes, sizeof(block));
            printf("%x %x %x", block.d, block.m, block.qs[0]);
        }
    """
    words = [f"{word:x}" for word in struct.unpack("=HH", bytes.fromhex("34127856"))]
    assert output(compiled(COMPILERS[0], source, tmp_path)) == [*words, "ab"]


@each_compiler
def test_lives_beside_ggml(compiler, tmp_path):
    """No name clashes with ggml's, and what has the same name has the same number."""
    headers = Path(pytest.importorskip("ggml").__file__).parents[1] / "include"
    checks = []
    for header, prefix, ours in [
        ("ggml.h", "GGML_TYPE_", "GGUF_GGML_TYPE_"),
        ("gguf.h", "GGUF_TYPE_", "GGUF_VALUE_TYPE_"),
    ]:
        names = set(re.findall(rf"(?m)^ *{prefix}(\w+) *= *\d+,", (headers / header).read_text("utf-8"))) - {"COUNT"}
        assert len(names) > 10
        checks += [
            f"static int same_{prefix}{name}[(int){prefix}{name} == (int){ours}{name} ? 1 : -1];" for name in names
        ]
    source = "\n".join(['#include "ggml.h"', '#include "gguf.h"', '#include "ours.h"', *checks, "int main(void) {}"])
    compiled(compiler, source, tmp_path, "-isystem", str(headers), "-Wno-unused-variable")
