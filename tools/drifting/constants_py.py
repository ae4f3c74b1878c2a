"""gguf-py's constants.py: read as a tree of syntax, never imported."""

import ast

from .calculate import calculated
from .facts import FILE_TYPE, GGUF, TENSOR_TYPE, TOKEN_TYPE, VALUE_TYPE, Facts, keys, numbered, sizes


def constants_py(text: str) -> Facts:
    """The facts in the text of constants.py.

    Raises:
        SyntaxError: It is no Python.
        ValueError: The value of a member or a size cannot be calculated.
    """
    module = ast.parse(text)
    classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    values = assigned(module.body)
    numbers = {
        name: node.value
        for name, node in values.items()
        if isinstance(node, ast.Constant) and isinstance(node.value, int)
    }
    facts: Facts = {name: numbers[name] for name in GGUF if name in numbers}
    if "GGUF_MAGIC" in numbers:
        facts["GGUF_MAGIC"] = numbers["GGUF_MAGIC"].to_bytes(4, "little").decode("latin-1")
    for enum in (VALUE_TYPE, TENSOR_TYPE, FILE_TYPE, TOKEN_TYPE):
        if enum in classes:
            members = assigned(classes[enum].body)
            facts |= numbered(enum, {name: calculated(node, numbers) for name, node in members.items()})
    facts |= sizes(quant_sizes(values.get("GGML_QUANT_SIZES"), numbers))
    return facts | keys(strings(classes.get("Keys")))


def assigned(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """What the statements assign to single names."""
    found = {}
    for node in body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            found[node.target.id] = node.value
    return found


def quant_sizes(table: ast.expr | None, numbers: dict[str, int]) -> dict[str, tuple[int, int]]:
    """A dict from members to pairs: elements and bytes of a block."""
    found = {}
    if isinstance(table, ast.Dict):
        for key, value in zip(table.keys, table.values, strict=True):
            if isinstance(key, ast.Attribute) and isinstance(value, ast.Tuple):
                elements, size = (calculated(part, numbers) for part in value.elts)
                found[key.attr] = elements, size
    return found


def strings(node: ast.AST | None) -> list[str]:
    """All strings that a class and the classes in it assign."""
    values = [each.value for each in ast.walk(node) if isinstance(each, ast.Assign)] if node else []
    return [value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)]
