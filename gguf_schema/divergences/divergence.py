"""A row of the table."""

from typing import NamedTuple


class Divergence(NamedTuple):
    """A feature or a fault of a file that not all treat alike.

    Attributes:
        part: The part of the file that it is in.
        subject: What is in the file.
        specification: allows, forbids, or silent.
        llama_cpp: reads or refuses.
        gguf_py: reads, refuses, or hangs.
        huggingface_js: reads or refuses.
        gguf_schema: What `open` does: reads or refuses.
        remark: What else there is to know.
        cases: Labelled files that show it; those called made_… are made by the tests.
    """

    part: str
    subject: str
    specification: str
    llama_cpp: str
    gguf_py: str
    huggingface_js: str
    gguf_schema: str
    remark: str
    cases: tuple[str, ...]


def rows(part: str, *rows: tuple[str, str, str, str]) -> list[Divergence]:
    """The rows of a part: subject, verdicts (five words in the order of the columns), remark, cases (words, too)."""
    made = []
    for subject, verdicts, remark, cases in rows:
        spec, llama_cpp, gguf_py, huggingface_js, ours = verdicts.split()
        row = Divergence(part, subject, spec, llama_cpp, gguf_py, huggingface_js, ours, remark, tuple(cases.split()))
        made.append(row)
    return made
