"""What stands in a file, as text, JSON or Markdown: the output of gguf-py's `gguf-dump`, made by reading the file once.

It differs from gguf-dump (0.19.0) where that is wrong, unsafe or fails:

* Nested arrays stay nested; what is shown of them is the first few values, depth first.
* JSON is strict: numbers that are not finite are the strings "NaN", "Infinity" and "-Infinity".
* Text and Markdown hold no unprintable character of the file (see `terminal`), and Markdown no markup of it. In code
  spans a `|` is `\\|`, and an empty string is a code span of one space.
* A key or a tensor name that stands twice is listed twice; in JSON the later ones are called `name@offset`.
* Version 1 is read, too: its counts are UINT32. Tensors of unknown types have the number as type, and "?" where nobody
  knows their size.

No result ends with a newline.
"""

from .as_json import dump_json
from .as_markdown import dump_markdown
from .as_text import dump_text

__all__ = ["dump_json", "dump_markdown", "dump_text"]
