"""What is written down of who did what: one event a line, as the first edition names them."""

from typing import NamedTuple


class AuditEvent(NamedTuple):
    event: str
    """What happened: `acl_denied`, `topic_created`, `auth_failure`, …"""
    principal: str
    client_ip: str
    resource: str
    """What it was about: `topic orders`."""
    reason: str = ""
    """Why it was refused, or what more there is to say."""
    method: str = ""
    """What was asked for: the command's name, or how somebody said who they are."""
