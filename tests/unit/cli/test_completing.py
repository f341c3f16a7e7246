"""TAB completes commands, and names that the broker knows."""

import pytest
from typer.testing import CliRunner

from goqueue.cli.main import app
from goqueue.client import GoQueue
from tests.unit.cli.command_line import CommandLine


def completed(*words: str) -> list[str]:
    """What bash is offered behind a line, as its script asks for it."""
    environment = {
        "_GOQUEUE_CLI_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("goqueue-cli", *words)),
        "COMP_CWORD": str(len(words)),
    }
    result = CliRunner().invoke(app, [], env=environment, prog_name="goqueue-cli")
    assert result.stderr == ""
    return result.stdout.split()


def test_topics_and_groups_of_the_broker_are_offered(cli: CommandLine, queue: GoQueue, topic: str) -> None:
    queue.groups.commit_offsets(f"g-{topic}", {topic: {0: 0}})

    assert completed("-s", cli.url, "topic", "describe", topic) == [topic]
    assert completed("topic", "describe", "-s", cli.url, topic) == [topic]
    assert completed("-s", cli.url, "group", "lag", f"g-{topic}") == [f"g-{topic}"]
    assert completed("-s", cli.url, "schema", "get", "no-such") == []


def test_commands_options_and_contexts_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed("gr") == ["group"]
    assert "--from-time" in completed("consume", "--from")
    assert completed("-c", "lo") == ["local"]


def test_without_a_broker_nothing_is_offered_and_nothing_is_said() -> None:
    assert completed("-s", "http://127.0.0.1:1", "topic", "describe", "o") == []
    assert completed("-s", "nonsense", "topic", "describe", "o") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(cli: CommandLine, shell: str) -> None:
    script = cli.printed("completion", shell)

    assert f"_GOQUEUE_CLI_COMPLETE=complete_{shell}" in script
    assert "goqueue-cli" in script
