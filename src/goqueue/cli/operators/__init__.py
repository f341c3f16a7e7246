"""Commands of `goqueue-admin`, for those who run a broker: tenants, backups, repair."""
