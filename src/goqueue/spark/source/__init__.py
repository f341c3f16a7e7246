"""Topics as tables and streams: the readers behind `format("goqueue")`."""
