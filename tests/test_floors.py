"""The house has floors: a module imports only from lower ones, and only the lowest know construct."""

import ast
from pathlib import Path

import pytest

import gguf_schema

PACKAGE = Path(gguf_schema.__file__).parent
FLOORS = [
    {"errors", "enums", "limits", "signatures", "terminal", "version"},
    {"walk", "sources", "progress", "divergences", "reader_limits"},
    {"constructs", "targets"},
    {"blocks", "keys", "journal"},
    {"layout"},
    {"schema"},
    {"values", "policy", "description", "canonical"},
    {"file"},
    {"write", "tensor_data", "hyperparameters", "quant_mix", "tensor_names", "dump", "annotate", "export", "generate"},
    {"summary", "demo", "page", "validate", "mutate", "strategies", "diff", "hashing", "extract", "shards", "convert"},
    {"tables", "explain", "suite", "fuzz", "edit"},
    {"cli"},
    {"__main__", "__init__"},
]
"""Lowest first. A package counts as one module."""
FLOOR_OF = {module: number for number, floor in enumerate(FLOORS) for module in floor}
KNOW_CONSTRUCT = {"walk", "constructs", "blocks", "layout", "schema"}


def module_of(file: Path) -> str:
    """The module, or the package directly below ours, that a file belongs to."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(source: str, depth: int = 0) -> set[tuple[str, ...]]:
    """Everything imported anywhere in a file, lazily or not: (top,) from outside, ("gguf_schema", module) from ours.

    Args:
        source: The file's text.
        depth: Packages between ours and the file: 0 for `walk.py`, 1 for `constructs/core.py`.
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {outer(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            if node.module == PACKAGE.name:
                found |= {ours(alias.name) for alias in node.names}
            else:
                found.add(outer(node.module))
        elif isinstance(node, ast.ImportFrom) and node.level == depth + 1:
            found |= {ours(node.module.split(".")[0])} if node.module else {ours(a.name) for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level > depth + 1:
            raise AssertionError(f"line {node.lineno} imports from above the package")
    return found


def outer(name: str) -> tuple[str, ...]:
    """An absolute import."""
    parts = name.split(".")
    return ours(parts[1] if len(parts) > 1 else "__init__") if parts[0] == PACKAGE.name else (parts[0],)


def ours(name: str) -> tuple[str, ...]:
    """A module of ours; a name that is none comes from the package itself."""
    is_module = name in FLOOR_OF or (PACKAGE / f"{name}.py").exists() or (PACKAGE / name).is_dir()
    return PACKAGE.name, name if is_module else "__init__"


def faults(module: str, source: str, depth: int = 0) -> list[str]:
    """What is wrong with the imports of a file."""
    found = []
    for top, *rest in sorted(imports(source, depth)):
        if top == "construct" and module not in KNOW_CONSTRUCT:
            found.append(f"{module} imports construct, which only {', '.join(sorted(KNOW_CONSTRUCT))} may")
        if top != PACKAGE.name or rest == [module]:
            continue
        (other,) = rest
        if other not in FLOOR_OF:
            found.append(f"{module} imports {other}, which stands on no floor")
        elif FLOOR_OF[other] >= FLOOR_OF[module]:
            where = "the same floor" if FLOOR_OF[other] == FLOOR_OF[module] else "a higher floor"
            found.append(f"{module} imports {other} from {where}: move what both need down")
    return found


FILES = sorted(PACKAGE.rglob("*.py"))


def test_every_module_stands_on_a_floor():
    missing = {module_of(file) for file in FILES} - FLOOR_OF.keys()
    assert not missing, (
        f"no floor is given for {', '.join(sorted(missing))}: add each to FLOORS in {Path(__file__).name}, "
        "one floor above the highest module that it imports, and to the map in the package's docstring"
    )


def test_every_listed_module_is_there():
    gone = FLOOR_OF.keys() - {module_of(file) for file in FILES}
    assert not gone, f"{', '.join(sorted(gone))} are listed in FLOORS, but are no modules: remove them there"


def test_a_module_is_listed_once():
    assert sum(map(len, FLOORS)) == len(FLOOR_OF)


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(PACKAGE)) for file in FILES])
def test_imports_go_down(file):
    module = module_of(file)
    assert module in FLOOR_OF, "see test_every_module_stands_on_a_floor"
    assert faults(module, file.read_text("utf-8"), len(file.relative_to(PACKAGE).parts) - 1) == []


def test_those_who_may_know_construct_do():
    """The list of those who may is no longer than it must be."""
    know = {
        module_of(file)
        for file in FILES
        if ("construct",) in imports(file.read_text("utf-8"), len(file.relative_to(PACKAGE).parts) - 1)
    }
    assert know == KNOW_CONSTRUCT


def test_the_map_of_the_house_is_the_same():
    """The package's docstring lists the floors in the same order."""
    lines = [line.strip() for line in (gguf_schema.__doc__ or "").splitlines() if line.startswith("    ")]
    listed = [set(line.split("   ")[0].replace("/", "").split()) for line in lines]
    assert listed == [floor for floor in FLOORS if not floor & {"__main__", "__init__"}]


@pytest.mark.parametrize(
    ("module", "source", "depth"),
    [
        ("values", "from .policy import errors", 0),
        ("policy", "from .values import infer", 0),
        ("values", "from . import policy", 0),
        ("walk", "from .schema import structs", 0),
        ("walk", "from . import schema, errors", 0),
        ("walk", "import gguf_schema.schema", 0),
        ("walk", "from gguf_schema import schema", 0),
        ("walk", "from gguf_schema.schema import structs", 0),
        ("walk", "from . import structs", 0),
        ("walk", "import gguf_schema", 0),
        ("walk", "from .unheard import of", 0),
        ("file", "def later():\n    from .write import write", 0),
        ("file", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .write import NewTensor", 0),
        ("constructs", "from ..schema import structs", 1),
        ("constructs", "from .. import blocks", 1),
        ("policy", "import construct", 0),
        ("policy", "from construct.core import evaluate", 0),
        ("cli", "def later():\n    import construct.expr", 0),
    ],
)
def test_faults_would_be_found(module, source, depth):
    assert len(faults(module, source, depth)) == 1


@pytest.mark.parametrize(
    ("module", "source", "depth"),
    [
        ("walk", "from .errors import GGUFError\nimport construct", 0),
        ("constructs", "from .core import Struct\nfrom . import numbers\nfrom ..walk import dtype", 1),
        ("constructs", "from ..errors import GGUFError\nfrom construct.core import evaluate", 1),
        ("hyperparameters", "from . import keys\nimport numpy.linalg", 0),
        ("__init__", "from .write import write", 0),
    ],
)
def test_no_fault_is_made_up(module, source, depth):
    assert faults(module, source, depth) == []


def test_no_import_leaves_the_package():
    with pytest.raises(AssertionError, match="above the package"):
        imports("from ..elsewhere import thing")
