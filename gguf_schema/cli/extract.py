"""`gguf-schema extract`."""

import argparse
import os

from .arguments import Commands, UsageError, model_command
from .streams import files_of, put, say, tell, whole_model
from .writing import demand_no_model, demand_no_terminal


def extract(args: argparse.Namespace) -> tuple[None, int]:
    """Write the data of one tensor, in whatever shard it is, to a file: as numpy's .npy, or as the bytes that it is."""
    from ..extract import npy, raw
    from ..progress import progress

    target = _beside(args.tensor, args.raw) if args.out is None else args.out
    if target == "-":
        demand_no_terminal()
    demand_no_model(target, args.force, files_of(args.file))
    with whole_model(args) as opened, progress(args.tensor) as show:
        chunks = (raw if args.raw else npy)(opened, args.tensor, show)
        if target == "-":
            return None, tell(chunks)
        put(target, chunks, args.force)
    say(args.file, f"{args.tensor} is in {target}, {os.path.getsize(target)} bytes")
    return None, 0


def _beside(tensor: str, raw: bool) -> str:
    """A file in this folder that is called like the tensor."""
    if tensor.startswith(".") or not tensor.isprintable() or set(tensor) & set("/\\:"):
        raise UsageError("this tensor's name is none for a file: say OUT")
    return f"{tensor}.{'raw' if raw else 'npy'}"


def add(commands: Commands) -> None:
    """Add the command."""
    added = model_command(commands, extract)
    added.add_argument("tensor", metavar="TENSOR", help="its name")
    added.add_argument(
        "out",
        metavar="OUT",
        nargs="?",
        help="the file; '-' is standard output; default: the tensor's name with .npy or .raw",
    )
    form = added.add_mutually_exclusive_group()
    form.add_argument(
        "--npy",
        action="store_true",
        help="as .npy (default); BF16 as uint16, quantised types as blocks, an element each with a field for each part",
    )
    form.add_argument("--raw", action="store_true", help="as the bytes in the file")
    added.add_argument("--force", action="store_true", help="replace a file; but no GGUF file")
