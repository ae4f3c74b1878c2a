"""`gguf-schema convert`."""

import argparse

from ..schema import ORDER_NAMES, VERSIONS
from .arguments import Commands, UsageError, model_command, positive
from .streams import demand_settled, files_of, model
from .writing import OUT_HELP, add_options, demand_replaceable, written


def convert(args: argparse.Namespace) -> tuple[str | None, int]:
    """Write a file in another byte order, version or alignment; all else stays as it is."""
    from ..convert import convert as converted

    if args.order is None and args.version is None and args.alignment is None and not args.canonical:
        raise UsageError("say what is to be converted: --order, --version, --alignment or --canonical")
    orders = {name: order for order, name in ORDER_NAMES.items()}
    demand_replaceable(args.out, args.force, files_of(args.file))
    demand_settled([args.file])
    with model(args) as opened:
        plan = converted(
            opened,
            order=orders.get(args.order),
            version=args.version,
            alignment=args.alignment,
            canonical=args.canonical,
            any_type=args.any_type,
        )
        if args.dry_run:
            return str(plan), 0
        return None, written(plan, args.out, args.force)


def add(commands: Commands) -> None:
    """Add the command."""
    added = model_command(commands, convert)
    added.add_argument("out", metavar="OUT", help=OUT_HELP)
    added.add_argument(
        "--order", choices=ORDER_NAMES.values(), help="byte order: numbers, and blocks of tensors field by field"
    )
    added.add_argument("--version", type=int, choices=VERSIONS, help="version of the format")
    added.add_argument("--alignment", type=positive, metavar="N", help="in bytes; tensors move")
    added.add_argument(
        "--canonical", action="store_true", help="tensors in the order of their infos, zeros between them, nothing else"
    )
    added.add_argument(
        "--any-type", action="store_true", help="swap also types whose big-endian form nobody defines (see README)"
    )
    add_options(added, "OUT")
