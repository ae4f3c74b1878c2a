"""`python -m gguf_schema` is the command `gguf-schema`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
