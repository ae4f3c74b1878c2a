"""Where tensor data is, and what stands around it."""

from collections.abc import Iterator

from .. import policy
from ..blocks import block_sizes
from ..enums import GGUFValueType
from ..errors import Finding, GGUFError
from ..keys import ALIGNMENT
from ..layout import align_up, data_size, sizes
from ..limits import DEFAULT_ALIGNMENT
from .infos import BITS_64
from .rule import ERROR, GGUF_CPP, NOTE, WARNING, Rule
from .subject import Subject

LONGEST_INFO = 1 << 10
"""Bytes in which a tensor info is looked for."""

CHUNK = 1 << 20
"""Bytes read at once."""


def offset_errors(subject: Subject) -> Iterator[Finding]:
    """Offsets that are no multiples of the alignment."""
    return policy.offsets(subject.parsed)


def data_errors(subject: Subject) -> Iterator[Finding]:
    """Tensor data that is not there."""
    parsed = subject.parsed
    yield from policy.data_start(parsed)
    for finding in policy.data_end(parsed):
        yield _past_the_end(parsed, finding) if finding.path.endswith(".offset") else finding


def _past_the_end(parsed: policy.Parsed, finding: Finding) -> Finding:
    """A tensor that begins after the end of the file, told from those whose offset wraps, and those without data."""
    index = int(finding.path.partition("[")[2].partition("]")[0])
    start = parsed.data_offset + parsed.tensor_infos[index]["offset"]
    wrapped = (start & BITS_64) + (parsed.known_sizes[index] or 0)
    if start > BITS_64 and parsed.size is not None and wrapped <= parsed.size:
        problem = f"byte {start} is byte {start & BITS_64} to a reader that counts in 64 bits"
        return finding._replace(code="offset-wraps", message=problem)
    return finding._replace(code="offset-past-end") if parsed.known_sizes[index] == 0 else finding


def layout(subject: Subject) -> Iterator[Finding]:
    """Tensors that do not follow each other in the order of their infos, each where the one before it ends."""
    infos = subject.tensor_infos
    if subject.failure is not None or not len(infos):
        return
    for index in range(1, len(infos)):
        if infos[index]["offset"] < infos[index - 1]["offset"]:
            yield Finding(
                "offset-order",
                f"tensor_infos[{index}].offset",
                f"{infos[index]['offset']} lies before the tensor above it",
            )
            break
    first = min(range(len(infos)), key=lambda index: infos[index]["offset"])
    if infos[first]["offset"]:
        yield Finding(
            "offset-first",
            f"tensor_infos[{first}].offset",
            f"the data begins with {infos[first]['offset']} bytes of no tensor",
        )
    end, owner = 0, first
    for number, (offset, size, index) in enumerate(_by_extent(subject)):
        path = f"tensor_infos[{index}].offset"
        if offset < end and size != 0:
            yield Finding("tensors-overlap", path, f"{offset} lies within tensor {owner}, which ends at {end}")
        elif number and offset > align_up(end, subject.parsed.alignment):
            yield Finding("offset-gap", path, f"{offset - end} bytes of no tensor before it")
        if size is None:
            return
        if offset + size > end:
            end, owner = offset + size, index


def _by_extent(subject: Subject) -> list[tuple[int, int | None, int]]:
    """As `_placed`; of tensors at the same offset the empty ones first."""
    known = subject.parsed.known_sizes
    placed = [(info["offset"], known[index], index) for index, info in enumerate(subject.tensor_infos)]
    return sorted(placed, key=lambda one: (one[0], one[1] is None or one[1] > 0, one[2]))


def dense(subject: Subject) -> Iterator[Finding]:
    """What llama.cpp asks of offsets: each is the sum of the padded sizes before it, in the order of the infos."""
    position = 0
    aligned = _alignment_in_c(subject)
    for index, (info, size) in enumerate(zip(subject.tensor_infos, subject.parsed.known_sizes, strict=True)):
        if info["offset"] != position:
            problem = f"{info['offset']}, where llama.cpp expects {position}"
            yield Finding("offset-not-dense", f"tensor_infos[{index}].offset", problem)
            return
        if size is None:
            return
        position += align_up(size, aligned)


def _alignment_in_c(subject: Subject) -> int:
    """The alignment to a reader to whom a key ends at a NUL."""
    for pair in subject.metadata_kv:
        if pair["key"].partition("\0")[0] == ALIGNMENT.template and pair["value_type"] == GGUFValueType.UINT32:
            return int(pair["value"]) or DEFAULT_ALIGNMENT
    return DEFAULT_ALIGNMENT


def alignment_in_c(subject: Subject) -> Iterator[Finding]:
    """A key that is general.alignment up to a NUL, and holds what is no alignment to llama.cpp."""
    for index, pair in enumerate(subject.metadata_kv):
        if pair["key"].partition("\0")[0] == ALIGNMENT.template:
            is_number = pair["value_type"] == GGUFValueType.UINT32
            if pair["key"] != ALIGNMENT.template and not (is_number and pair["value"].bit_count() == 1):
                path = f"metadata_kv[{index}].key.string"
                yield Finding("alignment-nul", path, "to llama.cpp this key is general.alignment, and holds none")
            return


def padding(subject: Subject) -> Iterator[Finding]:
    """Padding that is not zero: before the tensor data, and after each tensor up to the alignment."""
    model = subject.model
    if model is None or not model.tensors.infos:
        return
    start = min(model.data_offset, model.size)
    if not _is_zero(subject, model.infos_end, start):
        if _is_info(subject, model.infos_end):
            yield Finding("padding-nonzero", "tensor_count", "behind the last info stands one more")
        else:
            problem = "the bytes up to the tensor data are not all zero"
            yield Finding("padding-nonzero", "padding", problem, model.infos_end, start)
    placed = _placed(subject)
    offsets = [offset for offset, _, _ in placed] + [1 << 64]
    reach = 0
    for number, (offset, size, index) in enumerate(placed):
        if size is None:
            return
        reach = max(reach, offset + size)
        begin = min(model.data_offset + reach, model.size)
        end = min(model.data_offset + min(align_up(reach, model.alignment), offsets[number + 1]), model.size)
        if begin < end and not _is_zero(subject, begin, end):
            path = f"tensor_data[{index}].padding"
            yield Finding("padding-nonzero", path, "the bytes after a tensor are not all zero", begin, end)
            return


def _placed(subject: Subject) -> list[tuple[int, int | None, int]]:
    """Offset, size and index of each tensor in the order of the data; at one offset those of unknown size last."""
    infos = subject.tensor_infos
    known = sizes(infos, list(subject.parsed.known_sizes))
    placed = [(info["offset"], size, index) for index, (info, size) in enumerate(zip(infos, known, strict=True))]
    return sorted(placed, key=lambda one: (one[0], one[1] is None, one[1] or 0, one[2]))


def _is_info(subject: Subject, position: int) -> bool:
    """Whether a tensor info that somebody meant begins there."""
    assert subject.layout is not None
    start = subject.source.read_at(position, LONGEST_INFO)
    try:
        info = subject.layout.tensor_info.parse(start)
    except GGUFError:
        return False
    return bool(info.name) and info.name.isprintable() and info.type in block_sizes()


def _is_zero(subject: Subject, start: int, end: int) -> bool:
    """Whether all bytes are zero."""
    return all(not any(subject.source.read_at(at, min(CHUNK, end - at))) for at in range(start, end, CHUNK))


def tail(subject: Subject) -> Iterator[Finding]:
    """Bytes after the last tensor; of a file without tensors, after the metadata."""
    model = subject.model
    if model is None:
        return
    infos = model.tensors.infos
    size = data_size(((tensor.offset, tensor.n_bytes) for tensor in infos), model.alignment)
    end = model.data_offset + size if infos and size is not None else model.infos_end if not infos else model.size
    if end < model.size:
        is_zero = _is_zero(subject, end, model.size)
        what = "zeros" if is_zero else "bytes that are not all zero"
        code = "tail-zero" if is_zero else "tail-nonzero"
        yield Finding(code, "tail", f"{model.size - end} {what} after the end", end, model.size)


def unpadded(subject: Subject) -> Iterator[Finding]:
    """The last tensor is not padded."""
    model = subject.model
    if model is None or not model.tensors.infos:
        return
    size = data_size(((tensor.offset, tensor.n_bytes) for tensor in model.tensors.infos), model.alignment)
    ends = [tensor.data_offset + (tensor.n_bytes or 0) for tensor in model.tensors.infos]
    if size is not None and max(ends) <= model.size < model.data_offset + size:
        missing = model.data_offset + size - model.size
        yield Finding("last-unpadded", "tensor_data", f"{missing} bytes are missing at the end", model.size, model.size)


TENSOR_CLAUSE = "specification, gguf_tensor_info_t"
FILE_CLAUSE = "specification, File structure"
REWRITE = "Write the file anew, with the tensors one after the other"

RULES = (
    Rule(
        "offset-unaligned",
        ERROR,
        "An offset that is no multiple of the alignment",
        "tensor_infos.offset",
        TENSOR_CLAUSE,
        REWRITE,
        offset_errors,
    ),
    Rule(
        "offset-order",
        WARNING,
        "Data in another order than the infos",
        "tensor_infos.offset",
        GGUF_CPP,
        REWRITE,
        layout,
    ),
    Rule(
        "offset-first",
        WARNING,
        "No tensor at offset 0",
        "tensor_infos.offset",
        GGUF_CPP,
        REWRITE,
        layout,
    ),
    Rule(
        "offset-gap",
        WARNING,
        "A gap between tensors",
        "tensor_infos.offset",
        GGUF_CPP,
        REWRITE,
        layout,
    ),
    Rule(
        "tensors-overlap",
        WARNING,
        "Tensors that overlap",
        "tensor_infos.offset",
        TENSOR_CLAUSE,
        REWRITE,
        layout,
        True,
    ),
    Rule(
        "offset-not-dense",
        NOTE,
        "Offsets that llama.cpp does not expect",
        "tensor_infos.offset",
        GGUF_CPP,
        REWRITE,
        dense,
    ),
    Rule(
        "alignment-nul",
        NOTE,
        "A key that is general.alignment to C, and holds none",
        "metadata_kv.key.string",
        GGUF_CPP,
        "Rename the key",
        alignment_in_c,
    ),
    Rule(
        "offset-wraps",
        ERROR,
        "An offset that wraps around 2^64",
        "tensor_infos.offset",
        "gguf-py reads metadata as weights",
        REWRITE,
        data_errors,
    ),
    Rule(
        "offset-past-end",
        ERROR,
        "A tensor without data that begins after the end of the file",
        "tensor_infos.offset",
        TENSOR_CLAUSE,
        REWRITE,
        data_errors,
    ),
    Rule(
        "data-start-missing",
        ERROR,
        "The tensor data begins after the end of the file",
        "padding",
        GGUF_CPP,
        "Fetch the file again",
        data_errors,
    ),
    Rule(
        "data-missing",
        ERROR,
        "Tensor data that is not there",
        "tensor_data",
        "a truncated download",
        "Fetch the file again",
        data_errors,
    ),
    Rule(
        "last-unpadded",
        NOTE,
        "The last tensor is not padded",
        "tensor_data",
        FILE_CLAUSE,
        "Append zeros up to the alignment",
        unpadded,
    ),
    Rule(
        "padding-nonzero",
        WARNING,
        "Padding that is not zero",
        "padding",
        FILE_CLAUSE,
        "Overwrite it with zeros, if nothing is hidden there",
        padding,
        True,
    ),
    Rule(
        "tail-nonzero",
        WARNING,
        "Bytes after the end",
        "tail",
        "zip archives and scripts hide there",
        "Cut them off",
        tail,
    ),
    Rule(
        "tail-zero",
        NOTE,
        "Zeros after the end",
        "tail",
        "some writers pad more than they must",
        "Nothing is wrong",
        tail,
    ),
)
