"""How the keys of an issuer are had: from an address that the operator named, or a file. Never from a token.

What comes from an address is bounded in size and time, and nothing leads elsewhere: a redirection is refused.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import aiohttp

from goqueue.broker.broker import Broker
from goqueue.edge.authentication import TokenReader
from goqueue.edge.token_keys import KEY_SET_BYTES_MAX, TokenKeys
from goqueue.edge.tokens import Tokens
from goqueue.node.config_tokens import TokenWish

FETCH_S = 3.0


def open_tokens(broker: Broker, wish: TokenWish) -> TokenReader:
    """Begin to take tokens; their keys are read beside everything else, as long as the broker is open."""
    keys = TokenKeys(_fetch(broker, wish))
    broker.keep(asyncio.get_running_loop().create_task(keys.keep_fresh()))
    return Tokens(wish.config, keys)


def _fetch(broker: Broker, wish: TokenWish) -> Callable[[], Awaitable[bytes]]:
    if wish.is_file:
        return partial(broker.threads.run, partial(_read, Path(wish.key_set)))
    return partial(fetched, wish.key_set, ssl.create_default_context(cafile=wish.ca_file))


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(KEY_SET_BYTES_MAX + 1)


async def fetched(address: str, trust: ssl.SSLContext) -> bytes:
    """What is told at an address, or as much as is too much. Raises OSError."""
    try:
        async with (
            asyncio.timeout(FETCH_S),
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.get(address, ssl=trust, allow_redirects=False) as reply,
        ):
            if reply.status != 200:
                raise OSError(f"{address} answers {reply.status}")
            told = b""
            while len(told) <= KEY_SET_BYTES_MAX and (piece := await reply.content.readany()):
                told += piece
            return told
    except TimeoutError:
        raise OSError(f"{address} has not answered within {FETCH_S} s") from None
    except aiohttp.ClientError as error:
        raise OSError(f"{address} cannot be asked: {error}") from error
