"""Rows into topics: the writers behind `format("goqueue")`, at least once or exactly once."""
