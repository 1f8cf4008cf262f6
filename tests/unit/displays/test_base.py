"""A display that declares itself is found, and a manifest without evidence is told which pictures there are."""

import dataclasses

import pytest

from sfumato.displays import base
from sfumato.displays.base import display_of_manifest, registered_displays
from sfumato.displays.breach_plane import BreachPlaneDisplay
from sfumato.errors import InvalidParameterError, ManifestError
from sfumato.mechanisms.registry import registered_mechanisms
from unit.displays.breach_planes import TWO, manifest_of


def test_the_plane_is_registered_and_every_kind_names_mechanisms_that_exist():
    assert "breach-plane" in registered_displays()
    for name, kind in registered_displays().items():
        assert kind.name == name
        assert kind.shows
        assert set(kind.mechanisms) <= set(registered_mechanisms())


@pytest.mark.parametrize("kind", [None, "breach-plane"])
def test_a_manifest_becomes_the_display_it_has_evidence_for(kind):
    manifest = manifest_of(TWO)

    assert display_of_manifest(manifest, kind) == BreachPlaneDisplay.from_manifest(manifest)


@pytest.mark.parametrize("kind", [None, "breach-plane"])
def test_without_evidence_the_message_names_what_has_pictures(kind):
    manifest = dataclasses.replace(manifest_of(TWO), evidence={})

    with pytest.raises(ManifestError, match=r"m\.json: .*breach-plane for breach-aware"):
        display_of_manifest(manifest, kind, path="m.json")


def test_an_unknown_kind_is_refused():
    with pytest.raises(InvalidParameterError, match=r"one of .*breach-plane"):
        display_of_manifest(manifest_of(TWO), "pie")


def test_of_several_kinds_one_must_be_named(monkeypatch):
    known = registered_displays()
    second = dataclasses.replace(known["breach-plane"], name="second")
    monkeypatch.setattr(base, "registered_displays", lambda: {**known, "second": second})

    with pytest.raises(InvalidParameterError, match="breach-plane, second"):
        display_of_manifest(manifest_of(TWO))
    assert isinstance(display_of_manifest(manifest_of(TWO), "second"), BreachPlaneDisplay)
