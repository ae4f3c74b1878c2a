"""Where readers as installed do otherwise than their profiles say, and why: one row a reason, none of them a guess.

A profile says what a reader refuses. The llama.cpp that can be installed, through ggml-python 0.0.45, is of 2026-06;
the profiles describe that of 2026-10. A row is about what was wanted and what was seen, and looks at the findings or
the fields of the file itself.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from gguf_schema.enums import GGUFValueType
from gguf_schema.file import any_source
from gguf_schema.fuzz.outcomes import Outcome
from gguf_schema.keys import ALIGNMENT
from gguf_schema.layout import align_up
from gguf_schema.limits import MAX_SIZE, USUAL_DIMENSIONS
from gguf_schema.sources import PatchedSource
from gguf_schema.validate import PROFILES, REJECT, Fault, verdict
from gguf_schema.validate.infos import BITS_64
from gguf_schema.validate.subject import Subject

REFUSALS = {"gguf-py": ("raised", "memory")}
"""Reader → what else is a refusal: a Python reader may raise anything."""

COUNTED = 50_000
"""Elements that gguf-py may need all the time for that a file has."""

LLAMA_CPP = ("llama.cpp", "llama.cpp-data")


@dataclass(frozen=True)
class Judged:
    """A file, what was wanted of a reader, and what was seen.

    Attributes:
        reader: The reader's name, which is that of its profile.
        data: The file.
        faults: What `check` finds.
        outcome: What came of it.
    """

    reader: str
    data: bytes
    faults: list[Fault]
    outcome: Outcome

    @cached_property
    def wanted(self) -> str:
        """What the profile says: accept or reject."""
        return "reject" if verdict(self.faults, PROFILES[self.reader]) == REJECT else "accept"

    @cached_property
    def seen(self) -> str:
        """What the reader did: accept, reject, crash, hang or memory."""
        kind = self.outcome.kind
        return "reject" if kind in REFUSALS.get(self.reader, ()) else kind

    @cached_property
    def codes(self) -> frozenset[str]:
        """The codes of the findings for which the reader refuses a file, or else of all."""
        codes = frozenset(fault.code for fault in self.faults)
        return codes & PROFILES[self.reader].refuses or codes

    @cached_property
    def has(self) -> frozenset[str]:
        """The codes of all findings."""
        return frozenset(fault.code for fault in self.faults)

    @cached_property
    def subject(self) -> Subject:
        """The file's fields, as far as they can be read."""
        return Subject(any_source(self.data))


class Explanation(NamedTuple):
    """Why a reader does otherwise than its profile says.

    Attributes:
        name: What it is called.
        readers: Which readers it is about.
        wanted: What the profile says; empty for either.
        seen: What the reader does.
        holds: Whether it is true of a file.
        reason: The reason.
    """

    name: str
    readers: tuple[str, ...]
    wanted: str
    seen: str
    holds: Callable[[Judged], bool]
    reason: str


def divides_by_zero(judged: Judged) -> bool:
    """A dimension other than the first is 0, of an info that is whole, or of the one within which the file ends."""
    shapes = [shape for subject in _counting(judged.subject) for shape in _shapes(subject)]
    return judged.outcome.detail == "SIGFPE" and any(
        0 in shape[1:] for shape in shapes if len(shape) <= USUAL_DIMENSIONS
    )


def _shapes(subject: Subject) -> list[Sequence[int]]:
    """The dimensions of all infos, as far as they are read."""
    partial = [node.value for path, node in subject.fields.items() if path.endswith(".dimensions")]
    return [*(info["dimensions"] for info in subject.tensor_infos), *partial]


def _counting(subject: Subject) -> Iterator[Subject]:
    """A file; where it declares more tensors than it can hold, so that none is read, also with 1, 2, … as they are."""
    yield subject
    failure, layout = subject.failure, subject.layout
    if failure is None or failure.path != "tensor_count" or layout is None or failure.path not in subject.fields:
        return
    place = subject.fields[failure.path].start
    for count in range(1, subject.size):
        lower = Subject(PatchedSource(subject.source, place, layout.count.build(count)))
        yield lower
        if lower.failure is not None:
            return


def _asserts(judged: Judged, condition: str) -> bool:
    """Whether it was ended by this assertion."""
    return f"GGML_ASSERT({condition}) failed" in judged.outcome.told


def asserts_key(judged: Judged) -> bool:
    """A key is empty."""
    return _asserts(judged, "!key.empty()") and "key-empty" in judged.codes


def asserts_alignment(judged: Judged) -> bool:
    """The alignment has another type."""
    is_other = _asserts(judged, "type_to_gguf_type<T>::value == type")
    is_array = _asserts(judged, "ctx->kv[key_id].get_ne() == 1")
    return (is_other or is_array) and bool(judged.codes & {"alignment-type", "alignment-nul"})


def takes_array(judged: Judged) -> bool:
    """The alignment is an array of one UINT32."""
    pairs = {pair["key"].partition("\0")[0]: pair for pair in reversed(judged.subject.metadata_kv)}
    pair = pairs.get(ALIGNMENT.template)
    return (
        judged.codes <= {"alignment-type", "alignment-nul"}
        and pair is not None
        and pair["value_type"] == GGUFValueType.ARRAY
        and pair["value"]["type"] == GGUFValueType.UINT32
        and len(pair["value"]["array"]) == 1
    )


def has_new_type(judged: Judged) -> bool:
    """A tensor is of type Q2_0."""
    return "tensor-type-new" in judged.has


def has_name_twice(judged: Judged) -> bool:
    """Two names are equal up to a NUL."""
    return "name-nul-twice" in judged.has


def counts_too_many(judged: Judged) -> bool:
    """A product of dimensions is so near to 2^63 that it is too large to who divides, and takes no equal numbers."""
    for info in judged.subject.tensor_infos:
        first, *others = [*info["dimensions"], *[1] * USUAL_DIMENSIONS][:USUAL_DIMENSIONS]
        count = first
        for dimension in others:
            if not dimension:
                break
            if MAX_SIZE // dimension <= count:
                return True
            count *= dimension
    return False


def wraps_alone(judged: Judged) -> bool:
    """The size of one tensor wraps around 2^64 when it is padded, and to who does not see it all offsets are right."""
    parsed = judged.subject.parsed
    position = 0
    for info, size in zip(parsed.tensor_infos, parsed.known_sizes, strict=True):
        if size is None or info["offset"] != position:
            return False
        position += align_up(size, parsed.alignment) & BITS_64
    others = judged.codes - {"data-size-wraps", "offset-not-dense", "data-missing", "tensor-bytes-range"}
    return "data-size-wraps" in judged.codes and not others and position <= BITS_64


def has_no_memory(judged: Judged) -> bool:
    """The data that it declares is not there, and so large that there is no memory for it."""
    return _asserts(judged, "ctx->mem_buffer != NULL") and "data-missing" in judged.codes


def counts_on(judged: Judged) -> bool:
    """An array declares more elements than there are, and more than can be counted in the time."""
    failure = judged.subject.failure
    if failure is None or not judged.has & {"array-cut", "last-array-cut"}:
        return False
    return bool(judged.subject.fields[failure.path].value > COUNTED)


EXPLANATIONS: tuple[Explanation, ...] = (
    Explanation(
        "zero-dimension",
        LLAMA_CPP,
        "",
        "crash",
        divides_by_zero,
        "the older loader divides by each dimension but the first",
    ),
    Explanation(
        "empty-key",
        LLAMA_CPP,
        "reject",
        "crash",
        asserts_key,
        "the older loader asserts that keys are not empty; the newer refuses the file",
    ),
    Explanation(
        "alignment-type",
        LLAMA_CPP,
        "reject",
        "crash",
        asserts_alignment,
        "the older loader asserts that the alignment is a UINT32; the newer refuses the file",
    ),
    Explanation(
        "alignment-array",
        LLAMA_CPP,
        "reject",
        "accept",
        takes_array,
        "to the older loader an array of one UINT32 is a UINT32",
    ),
    Explanation(
        "q2-0",
        LLAMA_CPP,
        "accept",
        "reject",
        has_new_type,
        "the older loader does not know the type Q2_0",
    ),
    Explanation(
        "name-nul-twice",
        LLAMA_CPP,
        "accept",
        "reject",
        has_name_twice,
        "the older loader compares names up to their NUL",
    ),
    Explanation(
        "nearly-too-many",
        LLAMA_CPP,
        "accept",
        "reject",
        counts_too_many,
        "the older loader refuses some numbers of elements below 2^63: it divides, and compares with <=",
    ),
    Explanation(
        "padded-size-wraps",
        LLAMA_CPP,
        "reject",
        "accept",
        wraps_alone,
        "the older loader does not see that padding wraps a size",
    ),
    Explanation(
        "no-memory",
        ("llama.cpp-data",),
        "reject",
        "crash",
        has_no_memory,
        "the loader asks for the memory before it looks whether the data is there, and asserts that it gets it",
    ),
    Explanation(
        "counts-on",
        ("gguf-py",),
        "",
        "hang",
        counts_on,
        "gguf 0.19.0 counts to the length of an array behind the end of the file, too; how far depends on the time",
    ),
)
"""The rows; of a file the first that holds."""


def explanation(judged: Judged) -> str | None:
    """The name of the first explanation that holds; None where none does."""
    for row in EXPLANATIONS:
        if (
            judged.reader in row.readers
            and row.wanted in ("", judged.wanted)
            and row.seen == judged.seen
            and row.holds(judged)
        ):
            return row.name
    return None
