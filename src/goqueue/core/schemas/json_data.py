"""Whether a text is as a JSON Schema says."""

from collections.abc import Mapping

import jsonschema_rs
import msgspec

from goqueue.core.schemas.json_documents import Document, Json, pointer, validator_of
from goqueue.core.schemas.limits import EXPLAINED_PART, TooMuch

_NS_A_UNIT = 2.5
_NS_A_BYTE = 10
"""To read the text."""


def json_form(document: Document) -> bytes:
    """What a validator is made from: the schema and those it refers to."""
    return msgspec.json.encode((document.root, document.others()))


def json_ns(units: int) -> int:
    """What a byte of data may take to check where one place takes so many units."""
    return round(_NS_A_BYTE + _NS_A_UNIT * units)


class JsonJudge:
    """Of no more than `bytes_max` bytes at a time."""

    def __init__(self, form: bytes, bytes_max: int) -> None:
        root: Json
        others: Mapping[str, Json]
        root, others = msgspec.json.decode(form)
        self._validator = validator_of(root, others)
        self._bytes_max = bytes_max

    def misfit(self, payload: bytes) -> str | None:
        """Why a text is not as the schema says, and where; None when it fits."""
        if len(payload) > self._bytes_max:
            raise TooMuch
        try:
            value: Json = msgspec.json.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return f"it is not JSON: {error}"
        try:
            if self._validator.is_valid(value):
                return None
            if len(payload) > self._bytes_max // EXPLAINED_PART:
                raise TooMuch
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return f"{pointer(error.instance_path)}: {error.message}"
        except ValueError as error:
            return f"it cannot be checked: {error}"
        return "it does not fit"  # but the library does not say why
