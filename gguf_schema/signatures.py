"""Files that are handed to a GGUF reader by mistake, told by their first bytes."""

SIGNATURES = (
    (b"FUGG", "a GGUF file with its magic reversed (no writer should: the magic is 'GGUF' in both byte orders)"),
    (b"lmgg", "a GGML file (the format before GGUF)"),
    (b"ggml", "a GGML file with its magic reversed"),
    (b"GGML", "a GGML file (the format before GGUF)"),
    (b"fmgg", "a GGMF file (the format before GGUF)"),
    (b"tjgg", "a GGJT file (the format before GGUF)"),
    (b"GGJT", "a GGJT file (the format before GGUF)"),
    (b"ggjt", "a GGJT file with its magic reversed"),
    (b"algg", "a GGLA file (a LoRA adapter from before GGUF)"),
    (b"gguf", "a file with the magic in lower case"),
    (b"PK\x03\x04", "a zip archive (PyTorch's .pt and .bin files are zip archives)"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
    (b"\x1f\x8b", "a gzip file; unpack it first"),
    (b"BZh", "a bzip2 file; unpack it first"),
    (b"\xfd7zXZ", "an xz file; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstandard file; unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a numpy .npy file"),
    (b"version https://git-lfs", "a Git LFS pointer; fetch the real file with 'git lfs pull'"),
    (b"\xef\xbb\xbf", "a text file with a byte order mark, or one that a text editor saved"),
    (b"<", "an HTML or XML page: the download brought an error page"),
    (b"{", "a JSON file: an index, a configuration or an error message"),
)
SAFETENSORS_START = 8
"""safetensors begins with the length of its JSON header, then the header."""
LONGEST = max(len(start) for start, _ in SIGNATURES)


def file_kind(start: bytes) -> str:
    """Name the kind of file that begins with `start` (a few dozen bytes), as a phrase for a message."""
    if not start:
        return "an empty file"
    if start[SAFETENSORS_START : SAFETENSORS_START + 1] == b"{":
        return "a safetensors file"
    if not start.strip(b"\0"):
        return "a file of zeros: a download that was never filled"
    text = start.lstrip()
    for signature, kind in SIGNATURES:
        if start.startswith(signature) or (len(signature) == 1 and text.startswith(signature)):
            return kind
    return "of no kind that is known here"
