"""Names under which guarantees are told apart: their kind, and that persons are counted where they are."""

from sfumato.guarantees import ROW


def name_of(entry):
    """Name of a guarantee in a manifest, as the audit's checks say it; written from the manifest's form."""
    return entry["kind"] if entry["unit"] == ROW else f"{entry['kind']} by persons"


def by_name(release):
    """Entries of a release's manifest by their names."""
    return {name_of(entry): entry for entry in release.manifest.guarantees}
