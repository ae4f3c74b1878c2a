"""A raw file that takes little at once, as raw files may."""

import io


class ShortWrites(io.RawIOBase):
    """Takes at most so many bytes at once, and keeps them."""

    def __init__(self, most):
        super().__init__()
        self.most = most
        self.taken = b""

    def writable(self):
        return True

    def write(self, data):
        taken = bytes(data[: self.most])
        self.taken += taken
        return len(taken)
