"""What a case of the suite is, and the rows from which cases are made."""

from typing import NamedTuple

from ..validate import ACCEPT, PROFILES, REJECT, WARN
from ..validate.profiles import BY_CODE
from ..validate.rule import ERROR, NOTE
from .draft import Change, Draft, Made, built, nodes, span

LLAMA_CPP = ("llama.cpp", "llama.cpp-data")
WITH_DATA = ("llama.cpp-data",)
GGUF_PY = ("gguf-py", "gguf-py-head")
PY_0_19 = ("gguf-py",)
PY_HEAD = ("gguf-py-head",)
READERS = (*LLAMA_CPP, *GGUF_PY)
"""The readers whose verdicts are declared, by the names of their profiles."""

KINDS = {ACCEPT: "accept", WARN: "reader-dependent", REJECT: "refuse"}
"""Our default verdict → what a reader should do."""


class Case(NamedTuple):
    """One file.

    Attributes:
        name: What it is called: a folder, and a name in it.
        made: Its bytes, and what is to be read.
        rules: Every rule that it breaks.
        refused_by: The readers that refuse it.
        reason: What is in it, or wrong with it.
        source: The clause or thread that it comes from.
        path: The field at fault; empty where there is none.
        offset: Its first byte; None where there is no field at fault.
    """

    name: str
    made: Made
    rules: tuple[str, ...]
    refused_by: tuple[str, ...]
    reason: str
    source: str
    path: str = ""
    offset: int | None = None

    @property
    def file(self) -> str:
        """The path of its file in the suite."""
        return f"{self.name}.gguf"

    def expected(self) -> dict[str, str]:
        """The verdict of each profile: ours follow from the rules that are broken, those of readers are declared."""
        severities = {BY_CODE[code].severity for code in self.rules}
        is_forbidden = any(BY_CODE[code].is_forbidden for code in self.rules)
        default = REJECT if ERROR in severities else ACCEPT if severities <= {NOTE} else WARN
        ours = {
            "default": default,
            "strict": REJECT if default == REJECT or is_forbidden else ACCEPT,
            "spec": REJECT if PROFILES["spec"].refuses & set(self.rules) else ACCEPT,
        }
        return ours | {reader: REJECT if reader in self.refused_by else ACCEPT for reader in READERS}

    @property
    def kind(self) -> str:
        """What a reader should do."""
        return KINDS[self.expected()["default"]]


class Pair(NamedTuple):
    """A rule, a file that breaks it, and its twin, which does not and differs in that one thing.

    Attributes:
        code: The rule.
        twin: The file that does not.
        change: Makes the one that does.
        path: The field at fault.
        refused_by: The readers that refuse it.
        also: Other rules that it breaks.
        why: Why no file breaks this rule alone; empty where one does, or does but for notes.
        twin_rules: What the twin breaks.
        twin_refused_by: The readers that refuse the twin.
    """

    code: str
    twin: Draft | Made
    change: Change
    path: str
    refused_by: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    why: str = ""
    twin_rules: tuple[str, ...] = ()
    twin_refused_by: tuple[str, ...] = ()

    def cases(self) -> tuple[Case, Case]:
        """The file that breaks the rule, and its twin."""
        rule = BY_CODE[self.code]
        twin = made_of(self.twin)
        bad = self.change(twin)
        return (
            Case(
                f"rules/{self.code}",
                bad,
                (self.code, *self.also),
                self.refused_by,
                rule.title,
                rule.source,
                self.path,
                offset(bad, twin, self.path),
            ),
            Case(
                f"rules/{self.code}.twin",
                twin,
                self.twin_rules,
                self.twin_refused_by,
                f"The twin of {self.code}, without the fault",
                rule.source,
            ),
        )


class Row(NamedTuple):
    """A feature of the format, or what a public report is about.

    Attributes:
        name: What the case is called.
        source: The clause or thread.
        reason: What is in the file.
        twin: The file before the change.
        change: What makes it the file of the case; None where it is the file.
        rules: Every rule that it breaks.
        path: The field at fault, if there is one.
        refused_by: The readers that refuse it.
    """

    name: str
    source: str
    reason: str
    twin: Draft | Made
    change: Change | None = None
    rules: tuple[str, ...] = ()
    path: str = ""
    refused_by: tuple[str, ...] = ()

    def case(self) -> Case:
        """The case."""
        twin = made_of(self.twin)
        made = self.change(twin) if self.change else twin
        at = offset(made, twin, self.path) if self.path else None
        return Case(self.name, made, self.rules, self.refused_by, self.reason, self.source, self.path, at)


def made_of(twin: Draft | Made) -> Made:
    """The file of a draft."""
    return twin if isinstance(twin, Made) else built(twin)


def offset(bad: Made, twin: Made, path: str) -> int:
    """Where a field begins in a file; one that cannot be reached there begins where it does in the file's twin."""
    is_reached = bad.draft is not None or path == "tensor_data" or path in nodes(bad.data)
    return span((bad if is_reached else twin).data, path)[0]
