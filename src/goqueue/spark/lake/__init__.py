"""Lake tables: Iceberg, Delta and Parquet, written once an epoch and read back."""
