"""How the files of a model in shards are called."""

import os
import re
from typing import NamedTuple, Self

FORM = re.compile(r"(?P<prefix>.+)-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})\.gguf", re.DOTALL)


class ShardName(NamedTuple):
    """The name of a shard; as text it is the path.

    Attributes:
        prefix: The path up to the number.
        number: From 0; one less than in the text.
        shards: How many there are.
    """

    prefix: str
    number: int
    shards: int

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Self | None:
        """The name that a path is; None where it has not the form of one, or a number that no shard has."""
        found = FORM.fullmatch(os.fsdecode(path))
        if found is None or not 1 <= int(found["number"]) <= int(found["count"]):
            return None
        return cls(found["prefix"], int(found["number"]) - 1, int(found["count"]))

    def __str__(self) -> str:
        return f"{self.prefix}-{self.number + 1:05}-of-{self.shards:05}.gguf"

    def all(self) -> list[Self]:
        """The names of the whole set."""
        return [self._replace(number=number) for number in range(self.shards)]
