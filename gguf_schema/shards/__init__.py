"""Models in several files, opened as one.

names       what the files are called
opening     all files of a model by the name of any, and whether they belong together
"""

from .names import ShardName
from .opening import open, open_shards

__all__ = ["open", "open_shards", "ShardName"]
