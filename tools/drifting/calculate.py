"""Integer expressions of Python and C, calculated without running them."""

import ast
import operator
import re
from collections.abc import Callable, Mapping

OPERATORS: dict[type[ast.AST], Callable[..., int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,  # C's, of numbers that are not negative
    ast.FloorDiv: operator.floordiv,
    ast.USub: operator.neg,
}
DEEPEST = 10
"""Macros within macros."""
LONGEST = 1000
"""Characters of an expression."""


def calculated(node: ast.expr, names: Mapping[str, int]) -> int:
    """The value of an expression.

    Raises:
        ValueError: It holds anything but integers, names that are given, and the operators above.
    """
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](calculated(node.operand, names))
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](calculated(node.left, names), calculated(node.right, names))
    raise ValueError(f"no integer: {ast.unparse(node)}")


def c_integer(text: str, macros: Mapping[str, str], names: Mapping[str, int] | None = None) -> int:
    """The value of a constant expression of C, in which macros are replaced as text.

    Raises:
        ValueError: It is none, or needs more than `calculated` knows.
    """
    for _ in range(DEEPEST):
        text = re.sub(r"[A-Za-z_]\w*", lambda word: macros.get(word[0], word[0]), text)
        if len(text) > LONGEST:
            break
    try:
        return calculated(ast.parse(text.strip()[:LONGEST], mode="eval").body, names or {})
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"no integer: {text[:LONGEST]}") from error
