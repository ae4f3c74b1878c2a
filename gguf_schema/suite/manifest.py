"""suite.json: what each file of the suite is, who reads it, and what is to be read of it.

What is to be read comes from what was built, never from reading it.
"""

import hashlib
import json
from typing import Any

from ..enums import GGUFValueType as T
from ..layout import align_up, alignment_of, known_sizes, type_name
from ..schema import ORDER_NAMES, structs
from ..validate import PROFILES, RULES
from .case import Case
from .draft import Draft, placed

FORMAT = 1
"""Version of the manifest's own layout."""

LONGEST = 1000
"""Bytes of a string up to which the manifest repeats it."""

EXACT = 2**53
"""Integers beyond this are written as decimal strings: many readers of JSON have no others."""


def manifest(cases: tuple[Case, ...]) -> str:
    """The text of the manifest, with a line for each case, rule and profile."""
    profiles = {profile.name: profile.describes for profile in PROFILES.values()}
    rules = {
        rule.code: {
            "severity": rule.severity,
            "is_forbidden": rule.is_forbidden,
            "reason": rule.title,
            "source": rule.source,
            "path": rule.path,
        }
        for rule in RULES
    }
    parts = [
        f'"format": {FORMAT}',
        f'"profiles": {{\n{_lines(profiles)}\n}}',
        f'"rules": {{\n{_lines(rules)}\n}}',
        '"cases": [\n' + ",\n".join(json.dumps(record(case), allow_nan=False) for case in cases) + "\n]",
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(records: dict[str, Any]) -> str:
    return ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in records.items())


def record(case: Case) -> dict[str, Any]:
    """One case."""
    data, draft = case.made
    return {
        "name": case.name,
        "file": case.file,
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "kind": case.kind,
        "rules": list(case.rules),
        "expected": case.expected(),
        "error_path": case.path or None,
        "error_offset": case.offset,
        "reason": case.reason,
        "source": case.source,
        "values": None if case.kind == "refuse" or draft is None else values(draft),
    }


def values(draft: Draft) -> dict[str, Any]:
    """What is to be read of a file."""
    whole = placed(draft)
    aligned = alignment_of(whole["metadata_kv"])
    head = structs(whole["order"], whole["version"]).head.build(whole)
    infos = whole["tensor_infos"]
    return {
        "order": ORDER_NAMES[whole["order"]],
        "version": whole["version"],
        "alignment": aligned,
        "data_offset": align_up(len(head), aligned),
        "pairs": [
            {"key": _string(pair["key"]), "type": pair["value_type"].name, **_value(pair["value_type"], pair["value"])}
            for pair in whole["metadata_kv"]
        ],
        "tensors": [
            {
                "name": _string(info["name"]),
                "type": info["type"],
                "type_name": type_name(info["type"]),
                "dimensions": [_integer(dimension) for dimension in info["dimensions"]],
                "offset": info["offset"],
                "n_bytes": size,
                "sha256": None if size is None else _digest(whole["tensor_data"][info["offset"] :][:size]),
            }
            for info, size in zip(infos, known_sizes(infos), strict=True)
        ],
    }


def _value(type: T, value: Any) -> dict[str, Any]:
    """A value; of an array with the type of its elements, of which those that are arrays have their own."""
    if type is not T.ARRAY:
        return {"value": _single(type, value)}
    elements = value["type"]
    found = [_value(elements, item) if elements is T.ARRAY else _single(elements, item) for item in value["array"]]
    return {"elements": elements.name, "value": found}


def _single(type: T, value: Any) -> Any:
    if type is T.STRING:
        return _string(value)
    if type is T.BOOL:
        return value if isinstance(value, bool) else {"byte": value}
    if type in (T.FLOAT32, T.FLOAT64):
        number = structs(">").numbers[type]
        bits = number.build(value)
        return {"bits": bits.hex(), "number": repr(number.parse(bits))}
    return _integer(value)


def _integer(value: int) -> int | str:
    return value if abs(value) <= EXACT else str(value)


def _string(text: str) -> Any:
    """A string as text; the bytes of one that is none in hex; of a long one its length and digest."""
    data = text.encode("utf-8", "surrogateescape")
    if len(data) > LONGEST:
        return {"length": len(data), "sha256": _digest(data)}
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
