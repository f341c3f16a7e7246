"""Values of any type that commands and replies are made of, drawn at random."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from goqueue.model.access import Operation, PatternKind, ResourceKind, Rule
from goqueue.model.errors import GoQueueError, MessageTooLarge, OffsetOutOfRange
from goqueue.model.settings import TopicSettings
from goqueue.model.tenants import QUOTA_MAX, Quotas


@cache
def values(hint: Any) -> st.SearchStrategy[Any]:
    """Anything that a field may hold, in the plain shapes that doors give."""
    plain: dict[Any, st.SearchStrategy[Any]] = {
        Rule: st.builds(
            Rule,
            principal=st.sampled_from(["User:ann", "User:*", "Role:viewer"]),
            kind=st.sampled_from([ResourceKind.TOPIC, ResourceKind.GROUP]),
            name=st.sampled_from(["orders", "orders*"]),
            operation=st.sampled_from(Operation),
            pattern=st.sampled_from(PatternKind),
            is_allowed=st.booleans(),
        ),
        Quotas: st.builds(Quotas, max_topics=st.integers(0, QUOTA_MAX)),
        TopicSettings: st.builds(TopicSettings, retention_ms=st.integers(1, 2**40)),
        int: st.integers(-(2**63), 2**63 - 1),
        None: st.none(),
        Any: st.recursive(st.none() | st.booleans() | st.text(), lambda each: st.lists(each, max_size=2)),
        GoQueueError: st.sampled_from(
            [OffsetOutOfRange(9, start_offset=0, end_offset=4), MessageTooLarge("so large")]
        ),
        memoryview: st.binary().map(lambda given: memoryview(given)),
    }
    if hint is type(None):
        hint = None
    origin, inner = get_origin(hint), [values(each) for each in get_args(hint) if each is not Ellipsis]
    if isinstance(hint, NewType):
        return values(hint.__supertype__)
    if origin in (Union, UnionType):
        return st.one_of(inner)
    if origin is tuple and Ellipsis not in get_args(hint):
        return st.tuples(*inner)
    if origin is tuple:
        return st.lists(inner[0], max_size=2).map(tuple)
    if origin in (Sequence, Collection, list):
        return st.lists(inner[0], max_size=2)
    if origin is frozenset:
        return st.frozensets(inner[0], max_size=1)  # several come in any order, which says nothing
    if origin in (Mapping, dict):
        return st.dictionaries(*inner, max_size=2)
    if hint not in plain and (is_dataclass(hint) or hasattr(hint, "_fields")):
        return st.builds(hint, **{name: values(each) for name, each in get_type_hints(hint).items()})
    return plain[hint] if hint in plain else st.from_type(hint)
