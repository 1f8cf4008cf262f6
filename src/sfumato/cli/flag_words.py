"""How the command line says an error: the options by which what the hint speaks of is given."""

from __future__ import annotations

from sfumato.errors import InvalidParameterError, SfumatoError

FLAGS = {
    "bins": "--bins COLUMN=10,20,30",
    "delimiter": "--delimiter",
    "describe": "sfumato init --update",
    "encoding": "--encoding",
    "entries": "-p {name}.NAME=VALUE",
    "force": "--force",
    "format": "--format",
    "header": "--no-header",
    "host": "--host",
    "hierarchies": "'sfumato hierarchy check' counts them, 'sfumato hierarchy build' makes one",
    "hierarchy_encoding": "to look at it first, 'sfumato hierarchy show' has --encoding",
    "identifiers": "--identifiers",
    "init": "sfumato init DATA",
    "mechanism": "-m; 'sfumato mechanisms' lists them",
    "memory": "--memory",
    "n_folds": "--folds",
    "output": "-o",
    "port": "--port",
    "party_files": "sfumato collaborate keys",
    "parameters": "-p NAME=VALUE",
    "quasi_identifiers": "--quasi-identifiers",
    "roles": "--identifiers, --sensitive, --other",
    "root": "--root",
    "run_folder": "--run-folder",
    "shared_schema": "sfumato collaborate schema",
    "sheet": "--sheet",
    "skip_rows": "--skip-rows",
    "target": '--target COLUMN, or role = "target" in the project file',
    "tls_cert": "--tls-cert",
    "tls_key": "--tls-key",
    "token": "--token, for instance the output of openssl rand -base64 32",
    "timeout": "--timeout",
    "update": "sfumato init --update",
}
"""By the name that a parameter has in Python, see :class:`sfumato.errors.SfumatoError`.

``{name}`` stands for the parameter that the error is about.
"""

_OWN_NAMES = {
    "allowed_hosts": "--allow-host",
    "complete_rows_only": "--drop-incomplete",
    "guarantee": "--guarantee",
    "host": "--host",
    "kind": "--kind",
    "memory": "--memory",
    "port": "--port",
    "tls_cert": "--tls-cert",
    "token": "--token",
    "upload_limit": "--upload-limit",
}
"""Parameters that are known by their option."""


def in_flag_words(error: SfumatoError) -> str:
    """Say an error, and after its hint the options that it is about.

    Examples
    --------
    >>> from sfumato.errors import InputError
    >>> in_flag_words(InputError("is not utf-8 text", path="a.csv", hint="name its encoding", remedy=("encoding",)))
    'a.csv: is not utf-8 text. Hint: name its encoding (--encoding)'
    """
    text = str(error)
    if isinstance(error, InvalidParameterError) and error.name in _OWN_NAMES:
        text = _OWN_NAMES[error.name] + text.removeprefix(error.name)
    flags = [FLAGS[name] for name in dict.fromkeys(error.remedy) if name in FLAGS]
    if isinstance(error, InvalidParameterError):
        flags = [flag.replace("{name}", error.name) for flag in flags]
    return f"{text} ({', '.join(flags)})" if error.hint and flags else text
