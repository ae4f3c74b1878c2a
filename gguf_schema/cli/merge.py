"""`gguf-schema merge`."""

import argparse

from .arguments import Commands, command
from .streams import allow_many_files, demand_settled, files_of
from .writing import OUT_HELP, add_options, demand_replaceable, written


def merge(args: argparse.Namespace) -> tuple[str | None, int]:
    """Write a model in shards as one file; all shards are looked at before anything is written."""
    from ..shards import merge as merged
    from ..shards import open_shards

    allow_many_files()
    demand_settled(files_of(args.file))
    with open_shards(args.file) as model:
        demand_replaceable(args.out, args.force, [shard.name for shard in model.shards])
        plan = merged(model)
        if args.dry_run:
            return str(plan), 0
        return None, written(plan, args.out, args.force)


def add(commands: Commands) -> None:
    """Add the command."""
    added = command(commands, merge)
    added.add_argument("file", metavar="SHARD", help="any shard; the others are found by its name")
    added.add_argument("out", metavar="OUT", help=OUT_HELP)
    add_options(added, "OUT")
