"""Help in two lengths."""

import click
import pytest

from sfumato.cli.main import run
from sfumato.cli.options.short_help import ShortHelp


def helped(capsys, *arguments):
    assert run([*arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", ["release", "audit"])
def test_the_help_of_commands_with_many_options_fits_two_screens(capsys, command):
    said = helped(capsys, command, "--help")

    assert len(said.splitlines()) <= 80
    assert "--help-all" in said


@pytest.mark.parametrize("command", ["release", "audit"])
def test_everything_is_in_the_long_help(capsys, command):
    short, long = (helped(capsys, command, option) for option in ("--help", "--help-all"))

    options = {word for word in short.split() if word.startswith("--")} - {"--help-all)", "--help-all):"}
    assert options <= set(long.split())
    assert {"--escape-formulas", "--skip-rows"} & set(long.split()) - set(short.split())
    assert "Further examples:" in long
    assert "\f" not in long


def test_a_common_option_that_does_not_exist_is_a_bug():
    with pytest.raises(TypeError, match="no such options: nothing"):
        click.command("any", cls=ShortHelp, common=("nothing",))(lambda: None)
