"""Users and keys as this node knows them, from what is agreed; and what may be agreed on next.

Whoever changes one gets the value that is to be kept, or hears why not. Nothing here changes until the store
tells of it. Keys are found by their hashes, so that a request asks a dictionary once.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import inf

import msgspec

from goqueue.core.access.tenants import Tenants
from goqueue.core.access.values import tenant_dropped
from goqueue.model.errors import InvalidIdentity, KeyExists, KeyNotFound, UserExists, UserNotFound
from goqueue.model.identity import (
    ANONYMOUS,
    KEY_ID_MARK,
    ROOT,
    SCRAM_ITERATIONS_MAX,
    SCRAM_ITERATIONS_MIN,
    ApiKey,
    Principal,
    User,
)
from goqueue.model.identity_commands import AlterScram, ChangePassword, CreateKey, CreateUser, RotateKey
from goqueue.model.names import checked_name
from goqueue.model.tenants import TenantId

USERS = "identities/users/"
KEYS = "identities/keys/"
IDENTITIES_MAX = 10_000
"""So many users there may be, and so many keys: all nodes keep all of them at hand."""
_encode = msgspec.json.Encoder(order="sorted").encode
_decode_user = msgspec.json.Decoder(User).decode
_decode_key = msgspec.json.Decoder(ApiKey).decode


def user_entry(user: User) -> tuple[str, bytes]:
    """Where it stands in the store, and how."""
    return USERS + user.name, _encode(user)


def key_entry(key: ApiKey) -> tuple[str, bytes]:
    return KEYS + key.key_id, _encode(key)


class Identities:
    def __init__(self, tenants: Tenants | None = None) -> None:
        """`tenants`: those that there are. None: there are none."""
        self._tenants = tenants or Tenants()
        self.users: dict[str, User] = {}
        self.keys: dict[str, ApiKey] = {}
        self._by_digest: dict[str, str] = {}
        self.used_ms: dict[str, int] = {}
        """When each key was last shown at this node."""
        self.changes = 0
        """Grows with each change, and when a tenant goes: who remembers something looks whether it is so."""

    def load(self, items: Mapping[str, bytes]) -> None:
        """Begin with all that the store holds."""
        self.users.clear()
        self.keys.clear()
        self._by_digest.clear()
        self.changes += 1
        for key, value in items.items():
            self.put(key, value)

    def put(self, key: str, value: bytes) -> None:
        if key.startswith(USERS):
            self.users[key.removeprefix(USERS)] = _decode_user(value)
            self.changes += 1
        elif key.startswith(KEYS):
            kept = _decode_key(value)
            self.keys[kept.key_id] = kept
            self._by_digest[kept.digest] = kept.key_id
            self.changes += 1

    def drop(self, key: str) -> None:
        if key.startswith(USERS):
            self.users.pop(key.removeprefix(USERS), None)
            self.changes += 1
        elif key.startswith(KEYS):
            kept = self.keys.pop(key.removeprefix(KEYS), None)
            if kept is not None:
                self._by_digest.pop(kept.digest, None)
                self.used_ms.pop(kept.key_id, None)
            self.changes += 1
        elif tenant_dropped(key) is not None:
            self.changes += 1

    def user(self, name: str) -> User:
        user = self.users.get(name)
        if user is None:
            raise UserNotFound(name)
        return user

    def key(self, key_id: str) -> ApiKey:
        key = self.keys.get(key_id)
        if key is None:
            raise KeyNotFound(key_id)
        return key

    def good_key(self, digest: str, *, now_ms: int) -> ApiKey | None:
        """The key with this hash, if it opens anything now."""
        key_id = self._by_digest.get(digest)
        if key_id is None:
            return None
        key = self.keys[key_id]
        if not self.is_good(key, now_ms=now_ms):
            return None
        # A key of somebody who is not let in lets nobody in.
        return key if not key.user or self.is_good_user(key.user, now_ms=now_ms) else None

    def tenant_of(self, principal: Principal) -> TenantId | None:
        """Whose somebody is. A user's keys and certificates are of the tenant that the user is of."""
        user = self.users.get(principal.name)
        return principal.tenant if user is None else user.tenant

    def is_good_user(self, name: str, *, now_ms: int) -> bool:
        user = self.users.get(name)
        return user is not None and self.is_good(user, now_ms=now_ms)

    def is_shut_out(self, name: str, *, now_ms: int) -> bool:
        """Whether a user of that name is kept who is not let in, whatever else vouches for them."""
        return name in self.users and not self.is_good_user(name, now_ms=now_ms)

    def is_good(self, who: User | ApiKey, *, now_ms: int) -> bool:
        """Whether a user or a key opens anything. A tenant that goes takes those along that are its."""
        # Another tenant that has its name later is not theirs: they are older than it.
        is_there = who.tenant is None or self._since_ms(who.tenant) <= who.created_ms
        return is_there and who.is_good(now_ms)

    def _since_ms(self, tenant: TenantId) -> float:
        account = self._tenants.accounts.get(tenant)
        return inf if account is None else account.tenant.created_ms

    def _made_ms(self, tenant: TenantId | None, now_ms: int) -> int:
        """When somebody of a tenant was made: never before it, whatever a clock says."""
        account = None if tenant is None else self._tenants.accounts.get(tenant)
        return now_ms if account is None else max(now_ms, account.tenant.created_ms)

    def create_user(self, command: CreateUser, *, now_ms: int) -> User:
        checked_name(command.name, "a user", error=InvalidIdentity)
        if command.name in (ANONYMOUS.name, ROOT) or command.name.startswith(KEY_ID_MARK):
            raise InvalidIdentity(f"{command.name} is nobody's name, or a key's: choose another")
        if command.name in self.users:
            raise UserExists(command.name)
        self._check_room(self.users)
        return User(
            name=command.name,
            created_ms=self._made_ms(command.tenant, now_ms),
            updated_ms=now_ms,
            passwords=() if command.password is None else (command.password,),
            scram=dict(command.scram),
            is_service=command.is_service,
            expires_ms=command.expires_ms,
            tenant=command.tenant,
        )

    def change_password(self, command: ChangePassword, *, now_ms: int) -> User:
        user = self.user(command.name)
        kept = tuple(
            replace(form, until_ms=now_ms + command.keep_old_ms)
            for form in user.passwords[:1]
            if command.keep_old_ms > 0
        )
        passwords = (command.password, *kept)
        return replace(user, passwords=passwords, scram=dict(command.scram), updated_ms=now_ms)

    def alter_scram(self, command: AlterScram, *, now_ms: int) -> User:
        """Of a user that is not there one is made; of one without a form to drop nothing becomes."""
        for form in command.forms.values():
            if not SCRAM_ITERATIONS_MIN <= form.iterations <= SCRAM_ITERATIONS_MAX:
                raise InvalidIdentity(
                    f"SCRAM takes {SCRAM_ITERATIONS_MIN} to {SCRAM_ITERATIONS_MAX} iterations, "
                    f"not {form.iterations}"
                )
        user = self.users.get(command.name)
        if user is None:
            if not command.forms:
                raise UserNotFound(command.name)
            return self.create_user(CreateUser(name=command.name, scram=command.forms), now_ms=now_ms)
        if not command.forms and not set(command.dropped) & set(user.scram):
            raise UserNotFound(command.name)
        left = {kind: form for kind, form in user.scram.items() if kind not in command.dropped}
        return replace(user, scram={**left, **command.forms}, updated_ms=now_ms)

    def set_disabled(self, name: str, *, is_disabled: bool, now_ms: int) -> User:
        return replace(self.user(name), is_disabled=is_disabled, updated_ms=now_ms)

    def create_key(self, command: CreateKey) -> ApiKey:
        key = command.key
        checked_name(key.name, "a key", error=InvalidIdentity)
        if key.user and key.tenant not in (None, self.user(key.user).tenant):
            raise InvalidIdentity(f"the key of {key.user} is of the tenant that its user is of")
        if key.key_id in self.keys:
            raise KeyExists(key.key_id)
        self._check_room(self.keys)
        return replace(key, created_ms=self._made_ms(key.tenant, key.created_ms))

    def rotate_key(self, command: RotateKey, *, now_ms: int) -> tuple[ApiKey, ApiKey]:
        """The new key, and the old one as it is from now on."""
        old = self.key(command.key_id)
        if not self.is_good(old, now_ms=now_ms):
            raise KeyNotFound(command.key_id)
        self._check_room(self.keys)
        new = replace(
            old,
            key_id=command.new_id,
            prefix=command.prefix,
            digest=command.digest,
            created_ms=self._made_ms(old.tenant, now_ms),
        )
        until_ms = now_ms + command.keep_old_ms
        return new, replace(
            old, expires_ms=until_ms if old.expires_ms is None else min(until_ms, old.expires_ms)
        )

    def revoke_key(self, key_id: str) -> ApiKey:
        return replace(self.key(key_id), is_revoked=True)

    def keys_of(self, user: str) -> list[ApiKey]:
        return [key for key in self.keys.values() if key.user == user]

    def _check_room(self, kept: Mapping[str, object]) -> None:
        if len(kept) >= IDENTITIES_MAX:
            raise InvalidIdentity(f"there are {IDENTITIES_MAX} of them, and no more can be kept: delete some")
