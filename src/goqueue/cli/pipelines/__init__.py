"""`goqueue-cli pipeline`: the pipelines that Spark runs."""
