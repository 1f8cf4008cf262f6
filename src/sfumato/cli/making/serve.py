"""``sfumato serve``: the local page."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import click

_PACKAGES = ("starlette", "uvicorn", "python_multipart")


@click.command("serve")
@click.argument("data", required=False)
@click.option("--project", metavar="FILE", help="Project file to use; created if missing. Default: sfumato.toml.")
@click.option("--port", type=int, default=0, help="Port to listen on. Default: a free one.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; another one needs --root, --token, --tls-cert and --tls-key.",
)
@click.option(
    "--root", metavar="FOLDER", help="Folder whose files the page may use. Default: all that this account may use."
)
@click.option(
    "--token", envvar="SFUMATO_TOKEN", help="Secret in the page's address. Default: random. Also: SFUMATO_TOKEN."
)
@click.option("--tls-cert", metavar="FILE", help="Certificate chain (PEM); the page is then served over https.")
@click.option("--tls-key", metavar="FILE", help="Private key of the certificate (PEM).")
@click.option("--allow-host", multiple=True, metavar="NAME", help="Further host name of the page; repeat for several.")
@click.option("--upload-limit", default="2GB", show_default=True, metavar="SIZE", help="Largest upload.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def command(
    data: str | None,
    project: str | None,
    port: int,
    host: str,
    root: str | None,
    token: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    allow_host: tuple[str, ...],
    upload_limit: str,
    no_browser: bool,
) -> None:
    """Open the page: all steps from DATA to an audited release, in a browser of this machine.

    Prints the address with its secret token to stdout. Only this machine can reach the page. The page fetches nothing
    from other machines and sends nothing to them. Ctrl-C ends it. Without DATA the page asks for a file.

    \b
    Examples:
      sfumato serve
      sfumato serve admissions.csv
      sfumato serve --project sfumato.toml --port 8050 --no-browser
      SFUMATO_TOKEN=… sfumato serve --host 10.0.0.3 --root /srv/tables --tls-cert page.crt --tls-key page.key
    """
    _check_extra()
    from sfumato.web.settings import PageSettings, size_in_bytes

    settings = PageSettings(
        host=host,
        port=port,
        token=token or "",
        tls_cert=Path(tls_cert) if tls_cert is not None else None,
        tls_key=Path(tls_key) if tls_key is not None else None,
        upload_limit=size_in_bytes(upload_limit),
        allowed_hosts=allow_host,
        data=_existing(data) if data is not None else None,
        project=_project(project, has_data=data is not None) if project is not None else None,
        open_browser=not no_browser,
        root=Path(root).absolute() if root is not None else None,
    )
    from sfumato.web.server import serve

    serve(settings)


def _check_extra() -> None:
    """Say how to install what the extra brings, before anything begins."""
    from sfumato.errors import InvalidParameterError

    if lacking := [name for name in _PACKAGES if find_spec(name) is None]:
        raise InvalidParameterError(
            "the installation",
            f"but it lacks {', '.join(lacking)}",
            allowed="one with the extra 'web'",
            hint="pip install 'sfumato[web]'",
        )


def _existing(given: str) -> Path:
    """Refuse a file that is not there, before anything starts."""
    from sfumato.errors import InputError

    if given == "-":
        problem = "the page reads its data by path, and standard input has none"
        raise InputError(problem, path="-", hint="save the data to a file first")
    if not given or "\0" in given:
        problem = "DATA and --project must be paths of files"
        raise InputError(problem)
    if not os.path.isfile(given):  # noqa: PTH113 # it says no, and raises nothing, where a folder cannot be looked into
        problem = "is not a file" if os.path.lexists(given) else "does not exist"
        raise InputError(problem, path=given)
    return Path(given).absolute()


def _project(given: str, *, has_data: bool) -> Path:
    """Take a project file: with a table it may still have to be made, alone it must be there."""
    from sfumato.atomic import check_writable

    if not has_data:
        return _existing(given)
    path = Path(given)
    check_writable(path, force=True)
    return path.absolute()
