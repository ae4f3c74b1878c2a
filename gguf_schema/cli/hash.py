"""`gguf-schema hash`."""

import argparse

from ..errors import GGUFError
from .arguments import Commands, UsageError, model_command
from .streams import demand_settled, files_of, model, put, say
from .writing import demand_no_model

KINDS = {
    "sha256": "SHA-256 (the default)",
    "sha1": "SHA-1",
    "xxh64": "XXH64; wants the package xxhash",
    "xxh3": "XXH3 of 64 bits; wants it, too",
    "uuid": "a UUIDv5 of the whole model",
    "metadata": "SHA-256 of the metadata, whatever its byte order and the order of its keys; reads no tensors",
}


def hash(args: argparse.Namespace) -> str | tuple[str, int] | None:
    """Print hashes of each tensor and of the model, as llama.cpp's gguf-hash does, or check a manifest of them."""
    from ..hashing import hashes, manifest, metadata_hash
    from ..hashing.algorithms import ALGORITHMS, METADATA
    from ..progress import progress

    named = [kind for kind in KINDS if vars(args)[kind]]
    if args.check is not None:
        return _check(args, named)
    if args.manifest is not None:
        if args.json:
            raise UsageError("--manifest goes with no --json")
        demand_no_model(args.manifest, args.force, files_of(args.file))
        demand_settled([args.file])
    whole = [name for name in ALGORITHMS if name in (named or ["sha256"])]
    with model(args) as opened, progress(args.file) as show:
        found = list(hashes(opened, [name for name in whole if ALGORITHMS[name].is_hash], whole, show))
        if METADATA in named:
            found.append(metadata_hash(opened))
    if args.json:
        return manifest.hashes_json(args.file, found)
    text = "\n".join(manifest.line(args.file, each) for each in found)
    if args.manifest in (None, "-"):
        return text
    put(args.manifest, [f"{text}\n".encode()], args.force)
    say(args.file, f"the manifest is {args.manifest}, {len(found)} lines")
    return None


def _check(args: argparse.Namespace, named: list[str]) -> tuple[str, int]:
    """What becomes of the lines of a manifest; if kinds are named, of those of these kinds.

    Status 1 if one is not right, or there is none, or a tensor is in none, unless metadata alone was asked for.
    """
    from ..hashing import manifest
    from ..hashing.algorithms import METADATA
    from ..progress import progress

    try:
        with open(args.check, "rb") as file:
            wanted = manifest.parse(manifest.lines(file), args.file)
    except OSError as error:
        raise GGUFError(f"cannot read {args.check}: {error.strerror or error}") from None
    if named:
        wanted = [each for each in wanted if each.algorithm in named]
    with model(args) as opened, progress(args.file) as show:
        report = manifest.check(opened, wanted, show)
    if named == [METADATA]:
        report = report._replace(unlisted=[])
    text = manifest.report_json(args.file, report) if args.json else manifest.report_text(args.file, report)
    return text, int(not report.is_good)


def add(commands: Commands) -> None:
    """Add the command."""
    added = model_command(commands, hash)
    for kind, help in KINDS.items():
        added.add_argument(f"--{kind}", action="store_true", help=help)
    way = added.add_mutually_exclusive_group()
    way.add_argument("--manifest", metavar="OUT", help="write them to this file; '-' is standard output")
    way.add_argument(
        "--check", metavar="MANIFEST", help="say of each line whether it is right; if kinds are named, of those"
    )
    added.add_argument("--force", action="store_true", help="let --manifest replace a file; but no GGUF file")
    added.add_argument("--json", action="store_true", help="as one JSON document")
