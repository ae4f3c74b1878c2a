"""Keys, strings, booleans and arrays."""

from ..enums import GGUFValueType as T
from ..limits import LONGEST_KEY
from .case import GGUF_PY, LLAMA_CPP, READERS, Pair
from .draft import array, items, number, pair, put, text, toy

KEY, LENGTH, STRING = "metadata_kv[1].key", "metadata_kv[1].key.len", "metadata_kv[1].key.string"
TWO = toy(text("general.name", "toy"), text("general.license", "cc0-1.0"))
WHOLE_KEY = "test." + "k" * (LONGEST_KEY - len("test."))
NOT_UTF8 = b"caf\xe9".decode("utf-8", "surrogateescape")
NAMED = toy(text("general.name", "toy"))

PAIRS = (
    Pair("key-empty", NAMED, put(KEY, ""), LENGTH, LLAMA_CPP),
    Pair("key-twice", TWO, put("metadata_kv[2].key", "general.name"), "metadata_kv[2].key.len", READERS),
    Pair("key-utf8", NAMED, put(KEY, f"general.{NOT_UTF8}"), STRING, GGUF_PY),
    Pair("key-nul", NAMED, put(KEY, "general.name\0x"), STRING),
    Pair("key-characters", NAMED, put(KEY, "general.Name"), LENGTH),
    Pair("key-segment-empty", NAMED, put(KEY, "general..name"), LENGTH),
    Pair("key-long", toy(number(WHOLE_KEY, 1)), put(KEY, f"{WHOLE_KEY}k"), LENGTH),
    Pair("key-no-dot", NAMED, put(KEY, "name"), LENGTH),
    Pair("key-segment-digit", NAMED, put(KEY, "general.1st"), LENGTH),
    Pair("key-hyphen", NAMED, put(KEY, "general.first-name"), LENGTH),
    Pair(
        "key-virtual",
        NAMED,
        put(KEY, "GGUF.version"),
        LENGTH,
        GGUF_PY,
        ("key-characters",),
        "Such a key has upper-case letters",
    ),
    Pair(
        "alignment-nul",
        toy(number("general.alignments", 24)),
        put(KEY, "general.alignment\0"),
        STRING,
        LLAMA_CPP,
        ("key-nul",),
        "A key that is another up to a NUL has a NUL",
    ),
    Pair("string-utf8", NAMED, put("metadata_kv[1].value", NOT_UTF8), "metadata_kv[1].value.string"),
    Pair("bool-byte", toy(pair("test.flag", T.BOOL, True)), put("metadata_kv[1].value", 2), "metadata_kv[1].value"),
    Pair(
        "array-nested",
        toy(array("test.array", T.UINT8, 1, 2)),
        put("metadata_kv[1].value", items(T.ARRAY, items(T.UINT8, 1, 2))),
        "metadata_kv[1].value.type",
        LLAMA_CPP,
    ),
    Pair("architecture-missing", toy(), put("metadata_kv[0].key", "general.name"), "metadata_kv"),
    Pair("architecture-characters", toy(), put("metadata_kv[0].value", "LLaMA"), "metadata_kv[0].value.string"),
)
