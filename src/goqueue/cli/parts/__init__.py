"""What commands are made of: arguments, contexts, calls, tables, times, exit codes."""
