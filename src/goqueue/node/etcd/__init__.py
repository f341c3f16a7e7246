"""etcd: how several nodes agree. Imported only by a node that is one of a cluster."""
