"""What we say to etcd. `make stubs` writes rpc_pb2.py and its types anew from rpc.proto."""
