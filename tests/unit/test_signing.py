"""Detached signatures of manifests: made once, checked under one key, broken by any change."""

import json
from pathlib import Path

import pytest

from sfumato.cli.main import run

serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
ec = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ec")

PEM = serialization.Encoding.PEM
SIGNED = ["--signature", "release.csv.manifest.json.sig", "--public-key", "publisher.pub"]
AUDIT = ["audit", "release.csv", "--manifest", "release.csv.manifest.json", "--accept", "original,roles,figures"]


def write_keys(name, private):
    plain = serialization.NoEncryption()
    Path(f"{name}.pem").write_bytes(private.private_bytes(PEM, serialization.PrivateFormat.PKCS8, plain))
    public = private.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    Path(f"{name}.pub").write_bytes(public)


@pytest.fixture
def signed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{30 + i % 3},{'ab'[i % 2]},{'yn'[i % 2]}\n" for i in range(30))
    Path("people.csv").write_text("age,town,y\n" + rows)
    assert run(["release", "people.csv", "-m", "mondrian", "-k", "3", "--target", "y", "-o", "release.csv"]) == 0
    write_keys("publisher", ed25519.Ed25519PrivateKey.generate())
    assert run(["sign", "release.csv.manifest.json", "--key", "publisher.pem"]) == 0
    capsys.readouterr()


def signature_check(capsys, arguments):
    code = run([*arguments, "--json"])
    checks = {check["name"]: check["passed"] for check in json.loads(capsys.readouterr().out)["checks"]}
    return code, checks.get("signature")


@pytest.mark.slow
def test_a_signature_is_64_bytes_and_confirmed(signed, capsys):
    assert len(Path("release.csv.manifest.json.sig").read_bytes()) == 64
    assert signature_check(capsys, [*AUDIT, *SIGNED]) == (0, True)


@pytest.mark.slow
def test_nothing_is_said_of_a_signature_that_is_not_given(signed, capsys):
    assert signature_check(capsys, AUDIT) == (0, None)


@pytest.mark.slow
def test_another_key_is_refused(signed, capsys):
    write_keys("stranger", ed25519.Ed25519PrivateKey.generate())

    assert signature_check(capsys, [*AUDIT, *SIGNED[:2], "--public-key", "stranger.pub"]) == (5, False)


def test_any_change_of_the_manifest_breaks_it(signed, capsys):
    path = Path("release.csv.manifest.json")
    path.write_bytes(path.read_bytes() + b"\n")

    assert signature_check(capsys, [*AUDIT, *SIGNED])[1] is False


def test_a_broken_signature_is_refused(signed, capsys):
    Path("release.csv.manifest.json.sig").write_bytes(b"\0" * 63)

    assert signature_check(capsys, [*AUDIT, *SIGNED]) == (5, False)


def test_a_signature_that_is_there_is_not_replaced(signed, capsys):
    assert run(["sign", "release.csv.manifest.json", "--key", "publisher.pem"]) == 3
    assert "exists already" in capsys.readouterr().err
    assert run(["sign", "release.csv.manifest.json", "--key", "publisher.pem", "--force"]) == 0


@pytest.mark.parametrize("given", [SIGNED[:2], SIGNED[2:]])
def test_signature_and_key_are_given_together(signed, capsys, given):
    assert run([*AUDIT, *given]) == 2
    assert "given together" in capsys.readouterr().err


def test_other_keys_are_refused_in_one_line(signed, capsys):
    write_keys("curve", ec.generate_private_key(ec.SECP256R1()))
    Path("none.pem").write_text("no key")
    for key in ("curve.pem", "none.pem", "publisher.pub", "nowhere.pem"):
        assert run(["sign", "release.csv.manifest.json", "--key", key, "-o", "x.sig"]) == 3
        assert len(capsys.readouterr().err.splitlines()) == 1
    for key in ("curve.pub", "none.pem", "publisher.pem", "nowhere.pub"):
        assert run([*AUDIT, *SIGNED[:2], "--public-key", key]) == 3
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert not Path("x.sig").exists()


def test_only_a_manifest_is_signed(signed, capsys):
    assert run(["sign", "people.csv", "--key", "publisher.pem"]) == 3
    assert not Path("people.csv.sig").exists()
