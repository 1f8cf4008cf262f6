"""Manifests that tests change, written as a forger would who knows their canonical form."""

import json

from sfumato.manifest_schema import in_order


def text_of(entries):
    """Write entries as the text of a manifest."""
    return json.dumps(in_order(entries), indent=2, ensure_ascii=False) + "\n"
