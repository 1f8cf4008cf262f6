"""``sfumato sign``: a detached signature of a manifest."""

from __future__ import annotations

import click


@click.command("sign")
@click.argument("manifest")
@click.option("--key", required=True, metavar="FILE", help="Private Ed25519 key in PEM, without a passphrase.")
@click.option("-o", "--output", metavar="FILE", help="File to write. Default: MANIFEST.sig.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def command(manifest: str, key: str, output: str | None, force: bool) -> None:
    """Sign a MANIFEST, and with it the released file whose SHA-256 it states. Needs the extra [collaborate].

    \b
    Examples:
      openssl genpkey -algorithm ed25519 -out publisher.pem
      openssl pkey -in publisher.pem -pubout -out publisher.pub
      sfumato sign release.csv.manifest.json --key publisher.pem
      sfumato audit release.csv --manifest release.csv.manifest.json \\
        --signature release.csv.manifest.json.sig --public-key publisher.pub
    """
    from sfumato.cli.options.tables import needs_cryptography
    from sfumato.publishing.signing import sign_manifest

    needs_cryptography()
    written = sign_manifest(manifest, key, output, force=force)
    click.echo(f"wrote {written}", err=True)
