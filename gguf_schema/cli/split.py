"""`gguf-schema split`."""

import argparse

from .arguments import Commands, UsageError, command, positive, size
from .streams import allow_many_files, demand_settled, named, say
from .writing import add_options, demand_replaceable, save


def split(args: argparse.Namespace) -> tuple[str | None, int]:
    """Write a model as shards, PREFIX-00001-of-00003.gguf and so on, as llama.cpp's gguf-split does."""
    from ..shards import open as open_model
    from ..shards import split as divided

    if args.prefix == "-":
        raise UsageError("shards are files: they cannot go to standard output")
    allow_many_files()
    with open_model(named(args.file)) as model:
        demand_settled(shard.name for shard in model.shards)
        shards = divided(
            model,
            max_tensors=args.max_tensors,
            max_size=args.max_size,
            no_tensor_first_split=args.no_tensor_first_split,
        )
        read = [shard.name for shard in model.shards]
        for path in shards.paths(args.prefix):
            demand_replaceable(path, args.force, read)
        if args.dry_run:
            return shards.text(args.prefix), 0
        save(args.prefix, lambda show: shards.save(args.prefix, overwrite=args.force, show=show))
    for path, tensors, plan in zip(shards.paths(args.prefix), shards.tensors, shards.plans, strict=True):
        say(path, f"{tensors} tensors, {plan.size} bytes written")
    for change in shards.changes:
        say(args.file, f"not kept: {change.path}: {change.message}")
    return None, 0


def most(text: str) -> int:
    """A size from 1 on."""
    return size(text) or positive(text)


def add(commands: Commands) -> None:
    """Add the command."""
    added = command(commands, split)
    added.add_argument("file", metavar="IN", help="a GGUF file; '-' is standard input; of a shard all of its model")
    added.add_argument("prefix", metavar="PREFIX", help="the names of the shards up to the number")
    limit = added.add_mutually_exclusive_group()
    limit.add_argument("--max-tensors", type=positive, metavar="N", help="tensors of a shard (default: 128)")
    limit.add_argument(
        "--max-size", type=most, metavar="N[K|M|G]", help="bytes of a shard, of which only tensors count; K is 1,000"
    )
    added.add_argument("--no-tensor-first-split", action="store_true", help="put metadata alone into the first shard")
    add_options(added, "shards")
