"""tools/drift.py: what it reads of others, what it finds, and that nothing new is found in the peers."""

import importlib.util
from enum import IntEnum
from types import SimpleNamespace

import pytest

from gguf_schema.blocks import Block, blocks
from gguf_schema.constructs import Array, Float, Integer, field
from gguf_schema.enums import GGMLQuantizationType
from tools import drift
from tools.drifting import constants_py, facts, sources

FILES = {
    "include/ggml.h": """
        #pragma once
        #define GGML_MAX_DIMS 4 // of a tensor
        #ifndef GGML_MAX_NAME
        #   define GGML_MAX_NAME  64
        #endif
        enum ggml_type;
        enum ggml_type {
            GGML_TYPE_F32 = 0,
            GGML_TYPE_F16, // counted
            // GGML_TYPE_GONE = 2, no more
            GGML_TYPE_Q8_1 = 9, /* GGML_TYPE_NEVER = 8, */
            GGML_TYPE_COUNT,
        };
        GGML_API size_t ggml_type_size(enum ggml_type type);
    """,
    "include/gguf.h": """
        #define GGUF_MAGIC   "GGUF"
        #define GGUF_VERSION 3
        #define GGUF_DEFAULT_ALIGNMENT (4 * 8)
        enum gguf_type { GGUF_TYPE_UINT8 = 0, GGUF_TYPE_INT8 = 1, GGUF_TYPE_COUNT };
    """,
    "src/ggml-common.h": """
        typedef uint16_t ggml_half;
        #define QK_K 256
        #define QK8_1 32
        #define N_SCALES QK_K/64
        typedef struct {
            EXTENSION union {
                struct {
                    ggml_half d; // scale
                    ggml_half s;
                } AGGREGATE;
                ggml_half2 ds;
            } AGGREGATE;
            int8_t qs[QK8_1];
        } block_q8_1;
        static_assert(sizeof(block_q8_1) == 2*sizeof(ggml_half) + QK8_1, "wrong size, or padding");
        typedef union { ggml_half f16; uint16_t u16; } scale_t;
        typedef struct { int unrelated; } other;
        typedef struct {
            float d;
            uint8_t qs[3*QK_K/8];
            uint16_t scales[N_SCALES];
        } block_iq9_xs;
        static_assert(sizeof(block_iq9_xs) == sizeof(float) + 3*(QK_K/8) + N_SCALES*sizeof(uint16_t), "wrong");
    """,
    "llama.h": """
        enum llama_ftype { LLAMA_FTYPE_ALL_F32 = 0, LLAMA_FTYPE_MOSTLY_F16 = 1, LLAMA_FTYPE_GUESSED = 1024 };
        enum llama_token_type { LLAMA_TOKEN_TYPE_NORMAL = 1, LLAMA_TOKEN_TYPE_UNKNOWN = 2, };
    """,
    "py/constants.py": """
from enum import IntEnum, auto
raise SystemExit("this file is not to be run")

GGUF_MAGIC = 0x46554747
GGUF_VERSION = 3
GGUF_DEFAULT_ALIGNMENT = 32

class Keys:
    class General:
        NAME = "general.name"
        class Deeper:
            WIDTH: str = "not a plain assignment"
            BLOCKS = "{arch}.block_count"

class OTHER(IntEnum):
    LLAMA = auto()

class GGUFValueType(IntEnum):
    UINT8 = 0

    @staticmethod
    def get_type(val): ...

class GGMLQuantizationType(IntEnum):
    F32 = 0
    Q8_1 = 9

class LlamaFileType(IntEnum):
    ALL_F32 = 0

class TokenType(IntEnum):
    NORMAL = 1

QK_K = 256
GGML_QUANT_SIZES: dict[GGMLQuantizationType, tuple[int, int]] = {
    GGMLQuantizationType.F32: (1, 4),
    GGMLQuantizationType.Q8_1: (32, 2 + 2 + QK_K // 8),
}
""",
    "docs/gguf.md": """
Prose that names `general.file_type` and [a page](https://example.com/general.html).

```c
enum ggml_type: uint32_t {
    GGML_TYPE_F32 = 0,
    // GGML_TYPE_GONE = 1,
    GGML_TYPE_COUNT = 40,
};
enum gguf_metadata_value_type: uint32_t {
    // One byte, no sign.
    GGUF_METADATA_VALUE_TYPE_UINT8 = 0,
};
```

- **`general.architecture: string`**: for example
  - `llama`
  - see `general.name`
- `tokenizer.chat_template : string`: a template
- `general.base_model.{id}.name: string`: of a parent
- `[llm].block_count: uint64`: layers
- `gpt2.attention.head_count`
  - `MOSTLY_F16 = 1`
  - `ALL_F32 = 0` (rare)
""",
}
FACTS = {
    "include/ggml.h": {
        "GGMLQuantizationType.F32": 0,
        "GGMLQuantizationType.F16": 1,
        "GGMLQuantizationType.Q8_1": 9,
        "GGML_TYPE_COUNT": 10,
        "GGML_MAX_DIMS": 4,
        "GGML_MAX_NAME": 64,
    },
    "include/gguf.h": {
        "GGUFValueType.UINT8": 0,
        "GGUFValueType.INT8": 1,
        "GGUF_TYPE_COUNT": 2,
        "GGUF_MAGIC": "GGUF",
        "GGUF_VERSION": 3,
        "GGUF_DEFAULT_ALIGNMENT": 32,
    },
    "src/ggml-common.h": {
        "block Q8_1": "36 bytes: float16 d, float16 s, int8 qs[32]",
        "block IQ9_XS": "108 bytes: float32 d, uint8 qs[96], uint16 scales[4]",
    },
    "llama.h": {
        "LlamaFileType.ALL_F32": 0,
        "LlamaFileType.MOSTLY_F16": 1,
        "LlamaFileType.GUESSED": 1024,
        "TokenType.NORMAL": 1,
        "TokenType.UNKNOWN": 2,
    },
    "py/constants.py": {
        "GGUF_MAGIC": "GGUF",
        "GGUF_VERSION": 3,
        "GGUF_DEFAULT_ALIGNMENT": 32,
        "GGUFValueType.UINT8": 0,
        "GGMLQuantizationType.F32": 0,
        "GGMLQuantizationType.Q8_1": 9,
        "LlamaFileType.ALL_F32": 0,
        "TokenType.NORMAL": 1,
        "block_size F32": 1,
        "block_size Q8_1": 32,
        "type_size F32": 4,
        "type_size Q8_1": 36,
        "key general.name": "known",
        "key {arch}.block_count": "known",
    },
    "docs/gguf.md": {
        "GGMLQuantizationType.F32": 0,
        "GGML_TYPE_COUNT": 40,
        "GGUFValueType.UINT8": 0,
        "LlamaFileType.MOSTLY_F16": 1,
        "LlamaFileType.ALL_F32": 0,
        "key general.architecture": "known",
        "key tokenizer.chat_template": "known",
        "key general.base_model.{id}.name": "known",
        "key {arch}.block_count": "known",
        "key {arch}.attention.head_count": "known",
    },
}
"""What each file says, by hand."""


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


@pytest.fixture
def agreed(monkeypatch):
    """We say what the file of this path says, and no difference is known."""

    def agree(path):
        monkeypatch.setattr(drift, "ours", lambda: FACTS[path])
        monkeypatch.setattr(drift, "known", list)

    return agree


# What is read.


@pytest.mark.parametrize("path", FILES)
def test_a_file_is_read(path, tmp_path):
    write(tmp_path, path, FILES[path])
    (source,) = sources.tree(tmp_path)
    assert source.name == path
    assert source.facts == FACTS[path]
    assert {facts.family(subject) for subject in source.facts} == source.families


@pytest.mark.parametrize("path", FILES)
def test_a_file_that_says_nothing_lacks_everything(path, tmp_path, agreed, capsys):
    """A declaration that has got another name, say, is no reason to find nothing."""
    agreed(path)
    write(tmp_path, path, "")
    assert drift.main([str(tmp_path)]) == 1
    assert capsys.readouterr().out.count("NEW") == len(FACTS[path])


@pytest.mark.parametrize(
    ("declaration", "shown"),
    [
        ("half4 d;", "half4 d"),
        ("uint8_t qs[2][8];", "uint8_t qs [ 2 ] [ 8 ]"),
        ("uint8_t qs[UNKNOWN];", "uint8_t qs [ UNKNOWN ]"),
        ("uint8_t a, b;", "uint8_t a , b"),
    ],
)
def test_what_is_not_understood_is_shown(declaration, shown, tmp_path):
    write(tmp_path, "ggml-common.h", f"typedef struct {{ {declaration} float d; }} block_q4_0;")
    (source,) = sources.tree(tmp_path)
    assert source.facts == {"block Q4_0": f"? bytes: {shown}, float32 d"}


def test_constants_py_says_what_it_means_when_it_is_run():
    """gguf-py's own file, read and imported."""
    constants = pytest.importorskip("gguf").constants
    (path,) = {constants.__file__}
    with open(path, encoding="utf-8") as file:
        read = constants_py.constants_py(file.read())
    expected = {
        "GGUF_MAGIC": constants.GGUF_MAGIC.to_bytes(4, "little").decode(),
        "GGUF_VERSION": constants.GGUF_VERSION,
        "GGUF_DEFAULT_ALIGNMENT": constants.GGUF_DEFAULT_ALIGNMENT,
    }
    for name in ("GGUFValueType", "GGMLQuantizationType", "LlamaFileType", "TokenType"):
        expected |= {f"{name}.{member.name}": member.value for member in getattr(constants, name)}
    for type, (elements, size) in constants.GGML_QUANT_SIZES.items():
        expected |= {f"block_size {type.name}": elements, f"type_size {type.name}": size}
    assert {subject: value for subject, value in read.items() if not subject.startswith("key ")} == expected
    assert {subject.removeprefix("key ") for subject in read.keys() - expected} == set(templates(constants.Keys))


def templates(keys):
    for name, value in vars(keys).items():
        if isinstance(value, type):
            yield from templates(value)
        elif isinstance(value, str) and not name.startswith("__"):
            yield value


# What is found.


def test_peers_have_nothing_new(capsys):
    pytest.importorskip("gguf")
    pytest.importorskip("ggml")
    assert drift.main([]) == 0
    printed = capsys.readouterr().out
    assert "gguf 0.19.0: " in printed
    assert "ggml-python 0.0.45: " in printed
    assert printed.count(", 0 new") == 2
    assert "type_size Q8_1 theirs 40 ours 36 gguf-py 0.19.0 counts" in " ".join(printed.split())
    assert "stale" not in printed, "entries of known.toml that can go"


def test_known_differences_speak_of_families_that_there_are():
    families = frozenset().union(*(families for _, families in sources.FILES.values()))
    for entry in drift.known():
        assert facts.family(entry.subject) in families, entry


@pytest.mark.parametrize("path", FILES)
def test_the_same_is_no_difference(path, tmp_path, agreed, capsys):
    agreed(path)
    write(tmp_path, path, FILES[path])
    assert drift.main([str(tmp_path)]) == 0
    assert "0 known, 0 new" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "old", "new", "row"),
    [
        ("include/ggml.h", "Q8_1 = 9", "Q8_1 = 8", ("GGMLQuantizationType.Q8_1", "8", "9")),
        ("include/ggml.h", "GGML_TYPE_F16,", "", ("GGMLQuantizationType.F16", "absent", "1")),
        ("include/ggml.h", "GGML_TYPE_COUNT,", "GGML_TYPE_COUNT = 43,", ("GGML_TYPE_COUNT", "43", "10")),
        ("include/gguf.h", "INT8 = 1,", "INT8 = 1, GGUF_TYPE_X = 0,", ("GGUFValueType.X", "0", "absent")),
        ("include/gguf.h", '"GGUF"', '"GGXF"', ("GGUF_MAGIC", "GGXF", "GGUF")),
        ("src/ggml-common.h", "2*sizeof", "4*sizeof", ("block Q8_1", "40 bytes: ", "36 bytes: ")),
        ("src/ggml-common.h", "QK8_1 32", "QK8_1 64", ("block Q8_1", "68 bytes: ", "36 bytes: ")),
        ("src/ggml-common.h", "half s;", "half m;", ("block Q8_1", "36 bytes: float16 d, float16 m", "36 bytes: ")),
        ("src/ggml-common.h", "int8_t qs[QK8_1]", "uint8_t qs[QK8_1]", ("block Q8_1", "36 bytes: ", "36 bytes: ")),
        ("llama.h", "F16 = 1", "F16 = 2", ("LlamaFileType.MOSTLY_F16", "2", "1")),
        ("py/constants.py", "2 + 2 +", "4 + 4 +", ("type_size Q8_1", "40", "36")),
        ("py/constants.py", "general.name", "general.named", ("key general.named", "known", "absent")),
        ("docs/gguf.md", "[llm].block_count", "[llm].blocks", ("key {arch}.block_count", "absent", "known")),
        ("docs/gguf.md", "ALL_F32 = 0", "ALL_F32 = 3", ("LlamaFileType.ALL_F32", "3", "0")),
    ],
)
def test_a_change_of_theirs_is_found(path, old, new, row, tmp_path, agreed, capsys):
    agreed(path)
    assert old in FILES[path]
    write(tmp_path, path, FILES[path].replace(old, new, 1))
    assert drift.main([str(tmp_path)]) == 1
    found = [line for line in capsys.readouterr().out.splitlines() if line.endswith("NEW")]
    subject, theirs, ours = row
    assert any(
        line.startswith(f"  {subject} ") and f"theirs {theirs}" in line and f"ours {ours}" in line for line in found
    )


def other_size():
    wrong = Block(
        32,
        field("d", Float("<", "f"), ""),
        field("s", Float("<", "f"), ""),
        field("qs", Array(32, Integer("<", "b")), ""),
    )
    return {"blocks": lambda order: {**blocks(order), GGMLQuantizationType.Q8_0: wrong}}


def other_number():
    members = {member.name: member.value for member in GGMLQuantizationType}
    return {"GGMLQuantizationType": IntEnum("GGMLQuantizationType", {**members, "Q6_K": 99})}


@pytest.mark.parametrize(
    ("change", "row"),
    [
        (other_size, "type_size Q8_0 theirs 34 ours 40 NEW"),
        (other_number, "GGMLQuantizationType.Q6_K theirs 14 ours 99 NEW"),
        (lambda: {"KEYS": facts.KEYS[1:]}, f"key {facts.KEYS[0].template} theirs known ours absent NEW"),
    ],
)
def test_a_change_of_ours_is_found(change, row, monkeypatch, capsys):
    pytest.importorskip("gguf")
    for name, value in change().items():
        monkeypatch.setattr(facts, name, value)
    assert drift.main([]) == 1
    assert row in [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_a_key_that_nobody_has_is_found(monkeypatch, capsys):
    """In every family of keys, whatever is known of the others in it."""
    pytest.importorskip("gguf")
    invented = {f"{key.template.rpartition('.')[0]}.bogus_thing" for key in facts.KEYS}
    assert "{arch}.bogus_thing" in invented
    monkeypatch.setattr(facts, "KEYS", [*facts.KEYS, *(SimpleNamespace(template=key) for key in invented)])
    assert drift.main([]) == 1
    found = [line.split() for line in capsys.readouterr().out.splitlines() if line.endswith("NEW")]
    assert {words[1] for words in found} == invented


def known(**columns):
    return [drift.Known(**{"source": "gguf.h", "theirs": ".*", "ours": ".*", "reason": "of old", **columns})]


def test_a_known_difference_is_not_new(tmp_path, agreed, monkeypatch, capsys):
    agreed("include/gguf.h")
    monkeypatch.setattr(drift, "known", lambda: known(subject="GGUF_VERSION|GGUF_TYPE_COUNT", theirs="[24]"))
    write(tmp_path, "include/gguf.h", FILES["include/gguf.h"].replace("VERSION 3", "VERSION 4"))
    assert drift.main([str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "6 facts, 1 known, 0 new" in printed
    assert "of old" in printed
    write(tmp_path, "include/gguf.h", FILES["include/gguf.h"].replace("VERSION 3", "VERSION 5"))
    assert drift.main([str(tmp_path)]) == 1, "another value than the known one"


def test_a_known_difference_that_is_no_more_is_stale(tmp_path, agreed, monkeypatch, capsys):
    agreed("include/gguf.h")
    monkeypatch.setattr(drift, "known", lambda: known(subject="GGUF_VERSION"))
    write(tmp_path, "include/gguf.h", FILES["include/gguf.h"])
    assert drift.main([str(tmp_path)]) == 0
    assert "stale: GGUF_VERSION: of old" in capsys.readouterr().out


@pytest.mark.parametrize("columns", [{"subject": "LlamaFileType.X"}, {"subject": "GGUF_VERSION", "source": "ggml.h"}])
def test_what_a_source_does_not_speak_of_is_not_stale(columns, tmp_path, agreed, monkeypatch, capsys):
    agreed("include/gguf.h")
    monkeypatch.setattr(drift, "known", lambda: known(**columns))
    write(tmp_path, "include/gguf.h", FILES["include/gguf.h"])
    assert drift.main([str(tmp_path)]) == 0
    assert "stale" not in capsys.readouterr().out


# How it ends.


def test_a_tree_without_any_of_the_files(tmp_path, capsys):
    write(tmp_path, "readme.md", "- `general.name: string`")
    assert drift.main([str(tmp_path)]) == 2
    assert "none of ggml.h" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("ggml.h", "enum ggml_type { GGML_TYPE_F32 = here() };"),
        ("constants.py", "class TokenType:\n    NORMAL = print('run')"),
        ("constants.py", "no python"),
        ("constants.py", "class TokenType:\n    NORMAL = 1 // 0"),
    ],
)
def test_a_file_that_cannot_be_read(path, text, tmp_path, capsys):
    write(tmp_path, path, text)
    assert drift.main([str(tmp_path)]) == 2
    assert path in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("gguf.h", "#define GGUF_VERSION A\n#define A (A+A+A+A+A+A+A+A+A+A+A+A)\n"),
        ("gguf.h", f"#define GGUF_VERSION {'-' * 3000}1\n"),
        ("gguf.h", f"#define GGUF_VERSION {'1+' * 5000}1\n"),
        ("gguf.h", f"#define A x{' ' * 100_000}y\n"),
        ("ggml-common.h", "typedef struct { int a; " * 30_000),
        ("constants.py", f"x = {'-' * 50_000}1\n"),
        ("constants.py", f"x = {'1+' * 50_000}1\n"),
        ("ggml.h", " " * ((1 << 20) + 1)),
    ],
)
def test_hostile_files(path, text, tmp_path, capsys):
    """They end, in a message that names the file or in differences; never in a traceback."""
    (tmp_path / path).write_text(text, "utf-8")
    assert drift.main([str(tmp_path)]) in (1, 2)
    assert path in "".join(capsys.readouterr())


def test_text_of_others_is_escaped(tmp_path, agreed, capsys):
    agreed("py/constants.py")
    write(tmp_path, "constants.py", 'class Keys:\n    EVIL = "\\x1b[2J"')
    assert drift.main([str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert "key \\x1b[2J" in printed
    assert "\x1b" not in printed


def test_usage(capsys):
    with pytest.raises(SystemExit) as end:
        drift.main(["--json"])
    assert end.value.code == 2


def test_without_peers(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert drift.main([]) == 0
    assert "nothing to compare" in capsys.readouterr().out
