"""Who is asked when nobody is named: the model that comes with asides, where nothing else is set up. Never a guess."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping

from asides.cli.terminal import Terminal
from asides.providers.find import list_providers
from asides.providers.provider import Provider
from asides.providers.table import WITHOUT_A_KEY
from asides.settings import Settings
from asides.values.errors import UnknownModel


def default_model(arguments: Namespace, settings: Settings, environ: Mapping[str, str], terminal: Terminal) -> str:
    """The embedded model, said in a line; or an UnknownModel that lists what there is to choose from."""
    from asides.local import is_installed  # brings all that starting a process needs, for the rare case of no model

    keyed = [row for row in list_providers(settings.providers) if _has_key(row, environ)]
    nothing_else = not (keyed or settings.providers or arguments.base_url or arguments.api_key)
    if nothing_else and is_installed():
        terminal.note(
            f"asking {WITHOUT_A_KEY}, a very small model; for a real one: -m PROVIDER:MODEL "
            "(`asides providers` lists them)"
        )
        return WITHOUT_A_KEY
    raise UnknownModel(
        'no model is named: write -m PROVIDER:MODEL, set ASIDES_MODEL, or put model = "…" into asides.toml. '
        f"{_choice(keyed, settings, installed=is_installed())}"
    )


def _has_key(row: Provider, environ: Mapping[str, str]) -> bool:
    return any(environ.get(name, "").strip() for name in row.key_env)


def _choice(keyed: list[Provider], settings: Settings, *, installed: bool) -> str:
    told: list[str] = []
    if keyed:
        told.append(f"There are keys for {', '.join(row.name for row in keyed)}.")
    if settings.providers:
        told.append(f"There are rows of yours: {', '.join(row.name for row in settings.providers)}.")
    if told:
        told.append("`asides models -m PROVIDER` tells what is known of its models.")
    else:
        told.append("No provider's key is in the environment; `asides providers` lists the names.")
    how = "" if installed else ": pip install 'asides[local]'"
    told.append(f"{WITHOUT_A_KEY} needs no key{how}.")
    return " ".join(told)
