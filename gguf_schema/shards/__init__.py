"""Models in several files: opened as one, made from one, and made into one.

names       what the files are called
opening     all files of a model by the name of any, and whether they belong together
losing      what is not kept of the files
splitting   a model as shards
merging     shards as one file
"""

from .merging import merge
from .names import ShardName
from .opening import CUT, open, open_shards
from .splitting import Split, split

__all__ = ["CUT", "open", "open_shards", "ShardName", "split", "Split", "merge"]
