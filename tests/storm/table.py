"""The end of a storm in a table."""

from tests.storm.record import Record


def table(record: Record, *, seconds: float) -> str:
    """Misfortunes, messages by feature, checks by what they look for, and how many found something."""
    parts = {
        "misfortunes": record.misfortunes,
        "messages": record.messages,
        "checks": {str(kind): count for kind, count in record.checks.items()},
    }
    lines = []
    for title, counts in parts.items():
        lines += [f"{title:<28}{sum(counts.values()):>12,}"]
        lines += [f"  {name:<26}{count:>12,}" for name, count in sorted(counts.items())]
    lines += [f"{'violations':<28}{record.violation_count:>12,}", f"{'seconds':<28}{seconds:>12,.0f}"]
    return "\n".join(lines)
