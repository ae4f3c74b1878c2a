"""What a plan would change, by key and tensor, and around them."""

from ..diff import heads
from ..diff.text import as_text
from ..layout import alignment_of
from ..terminal import printable
from .planning import Plan


def preview(plan: Plan, name: str) -> str:
    """The differences of the heads, as `diff` shows them, what else changes, and how it would be done.

    Args:
        plan: The plan.
        name: The name of the file, as it is shown.
    """
    head = {
        "metadata_kv": plan.head.pairs,
        "alignment": alignment_of(plan.head.pairs),
        "tensor_infos": [kept.info for kept in plan.head.tensors],
    }
    changed = as_text(name, f"{name} (edited)", heads(plan.model.head, head))
    return "\n".join(filter(None, [changed, *(printable(str(change)) for change in plan.changes), str(plan)]))
