"""`goqueue-cli job`: bulk work on topics, on Spark. Each job can be stopped and run again."""

from goqueue.cli.jobs import rows as jobs_rows
from goqueue.cli.jobs import topics as jobs_topics
from goqueue.cli.parts.frame import noun

app = noun(
    "Move, keep and check whole topics: archive, restore, mirror, verify, export, import, replay, stats."
)
app.command("archive")(jobs_topics.archive)
app.command("restore")(jobs_topics.restore)
app.command("mirror")(jobs_topics.mirror)
app.command("verify")(jobs_topics.verify)
app.command("export")(jobs_rows.export)
app.command("import")(jobs_rows.import_files)
app.command("replay")(jobs_rows.replay)
app.command("stats")(jobs_rows.stats)
