"""Stubs of wire formats that are not our own, made from the small .proto files beside them."""
