"""Edits of metadata and tensors of files of any size: what they would do, at what cost, and doing it.

    from gguf_schema import edit

    with gs.open("model.gguf") as model:
        planned = edit.plan(model, [edit.Set("general.name", "New name")], in_place=True)
        print(planned)
        edit.apply(planned)

types       types as text
values      values as JSON and as they are typed
edits       edits as data, and what they make of a head
lists       lists of edits in JSON and TOML
reserve     room that is left on purpose
parts       a changed file in terms of the one that it is made from
planning    the cheapest safe way
doing       going it, and back
preview     what would change, as text

What makes a change in place whole or not at all is `gguf_schema.journal`.
"""

from .doing import apply, chunks, recover, save, undo
from .edits import Align, DeleteTensor, Edit, OrderTensors, RenameKey, RenameTensor, Set, Unset
from .planning import Plan, plan
from .types import type_named, type_text
from .values import Text

__all__ = [
    "Align",
    "DeleteTensor",
    "Edit",
    "OrderTensors",
    "Plan",
    "RenameKey",
    "RenameTensor",
    "Set",
    "Text",
    "Unset",
    "apply",
    "chunks",
    "plan",
    "recover",
    "save",
    "type_named",
    "type_text",
    "undo",
]
