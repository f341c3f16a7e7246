"""The peer door: how nodes of a cluster talk to each other, behind the port `Peers`.

`wire` is the outside of a message, `messages` and `calls` are what stands in it, `hello` is who may speak.
`protocol` carries bytes, a `link` is one connection with its streams and calls, and `door` keeps all of
them: it listens, dials whom it knows, and cuts off who is not registered. It imports no broker: who uses it
comes in through the port.
"""
