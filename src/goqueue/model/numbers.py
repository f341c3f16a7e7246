"""Numbers that others have written: in headers, receipts and paths. None of them is believed unseen."""

_DIGITS_MAX = 18
"""So many fit into 64 bits. Python itself refuses to read some thousands, and takes long for less."""


def whole_number(text: str | bytes | None) -> int | None:
    """A number written in plain digits, at most 18 of them; None for anything else."""
    if text is None or len(text) > _DIGITS_MAX or not text.isascii() or not text.isdigit():
        return None
    return int(text)
