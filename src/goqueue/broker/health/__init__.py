"""The broker's condition: probes, the disk's space and the reserve, bytes gone bad, folders put right.

Watches and repairs what the other rooms work on; no message passes through here.
"""
