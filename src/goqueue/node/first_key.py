"""The first administrator: where doors ask who comes and nobody is known, a key is made and printed once."""

from goqueue.broker.access.identities import create_key
from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.edge.credentials import make_key
from goqueue.model.access import Role
from goqueue.model.errors import GoQueueError, KeyExists
from goqueue.model.identity import KEY_ID_MARK, ApiKey
from goqueue.model.identity_commands import CreateKey
from goqueue.node.config import NodeConfig

FIRST_KEY_ID = f"{KEY_ID_MARK}first"


async def make_first_key(broker: Broker, config: NodeConfig) -> None:
    """Of several nodes that start together one makes it. Who loses it sets a root key, and makes another."""
    identities = broker.identities
    if not config.asks_who or config.auth.root_key or identities.users or identities.keys:
        return
    made = make_key()
    key = ApiKey(
        key_id=FIRST_KEY_ID,
        name="first",
        prefix=made.prefix,
        digest=made.digest,
        created_ms=broker.clock.wall_ms(),
        roles=(Role.ADMIN,),
    )
    try:
        await at_home(broker, create_key, CreateKey(key=key))
    except KeyExists:
        return
    except GoQueueError as error:
        print(f"auth   no first key could be made ({error}); set GOQUEUE_API_ROOT_KEY and start again")
        return
    print(f"auth   the first key, with all rights, is shown this once: {made.secret}")
