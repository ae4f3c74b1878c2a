"""Text from a file, made safe to print: names and values in a hostile file may hold commands for the terminal."""


def printable(text: str) -> str:
    r"""The text with every character that is not printable written as Python's escape for it.

    Those are control characters (ESC, newlines, DEL, C1), what is invisible or turns the direction of writing (U+202E,
    U+200B), spaces other than the ASCII one, private and unassigned characters, and the lone surrogates that stand for
    bytes that are no UTF-8. Backslashes stay as they are: the result is for reading, not for reading back.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
