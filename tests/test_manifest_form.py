"""The form of manifests: the reader and a validator of the JSON Schema in ``docs`` refuse the same."""

import copy
import json
import random
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import sfumato
from sfumato.errors import ManifestError, ManifestRefusedError
from sfumato.manifest import Manifest, manifest_digest
from sfumato.manifest_schema import PARAMETERS, parsed_manifest, problems_in, schema
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.mechanisms.stated_parameters import PARAMETERS_FILE, as_text

SCHEMA = Path(__file__).parents[1] / "docs" / "manifest" / "3.schema.json"
NAMES = list(registered_mechanisms())


@pytest.fixture(scope="module")
def validator():
    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def manifests(tmp_path_factory):
    """One manifest of every mechanism, as text, made from a table of 0/1 columns."""
    rng = np.random.default_rng(8)
    bits = (0.5 * rng.random((160, 5)) + 0.5 * rng.random((160, 1)) < np.linspace(0.3, 0.7, 5)).astype(int)
    lines = ["id,a,b,c,d,e,illness,y"]
    lines += [",".join([f"p{i}", *map(str, row), "uvw"[i % 3], "ny"[row[2]]]) for i, row in enumerate(bits)]
    path = tmp_path_factory.mktemp("flags") / "flags.csv"
    path.write_text("\n".join(lines) + "\n")
    table = sfumato.read_table(path)
    roles = {"id": sfumato.Role.IDENTIFIER, "illness": sfumato.Role.SENSITIVE, "y": sfumato.Role.TARGET}
    table = table.with_schema(table.schema.with_roles(roles))
    texts = {}
    for name, info in registered_mechanisms().items():
        few = {"n_features": 3} if "n_features" in {p.name for p in info.parameters} else {}
        texts[name] = sfumato.release(table, build_mechanism(name, few)).manifest.to_json()
    return texts


def sealed_text(data):
    """Write tampered data as a manifest is written, with the digest that fits them."""
    data["digest"] = manifest_digest(data)
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def objects_in(data, place=()):
    """Places of all JSON objects, the manifest itself included."""
    if isinstance(data, dict):
        yield place
        for key, value in data.items():
            yield from objects_in(value, (*place, key))
    elif isinstance(data, list):
        for i, value in enumerate(data):
            yield from objects_in(value, (*place, i))


def leaves_in(data, place=()):
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else None
    if items is None:
        yield place
    else:
        for key, value in items:
            yield from leaves_in(value, (*place, key))


def at(data, place):
    for key in place:
        data = data[key]
    return data


def is_by_name(place):
    """Whether the keys of an object are names of the data: those of which any may come are no unknown keys."""
    named = ("n_values", "cuts", "labels", "levels", "information_gain_bits")
    return (place and place[-1] in named) or place[-2:] == ("binarize", "columns")


def is_refused(text):
    try:
        parsed_manifest(text)
    except ManifestError:
        return True
    return False


def test_the_schema_in_the_docs_is_that_of_the_code():
    """Write it again with ``python -m sfumato.manifest_schema docs/manifest``."""
    text = json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"

    jsonschema.Draft202012Validator.check_schema(schema())
    assert [path.name for path in SCHEMA.parent.iterdir()] == [SCHEMA.name]
    assert SCHEMA.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", NAMES)
def test_the_manifest_of_every_mechanism_has_the_form(manifests, validator, name):
    data = json.loads(manifests[name])

    assert [error.message for error in validator.iter_errors(data)] == []
    assert list(problems_in(data)) == []
    assert parsed_manifest(manifests[name]) == data
    assert Manifest.from_json(manifests[name]).to_json() == manifests[name]


def test_the_parameters_of_the_form_are_those_that_mechanisms_declare():
    """Write the file again with ``python -m sfumato.mechanisms.stated_parameters``."""
    shipped = Path(sfumato.__file__).parent / PARAMETERS_FILE

    assert shipped.read_text(encoding="utf-8") == as_text()
    assert PARAMETERS.keys() == set(NAMES) - {"auto"}  # manifests name what auto chose


def test_every_parameter_of_every_mechanism_is_known():
    infos = {name: info for name, info in registered_mechanisms().items() if name != "auto"}
    unknown = {
        (name, p.name) for name, info in infos.items() for p in info.parameters if p.name not in PARAMETERS[name]
    }

    # how many processes work says nothing about a release
    assert unknown == {("breach-aware", "n_workers"), ("best-first-wrapper", "n_workers")}


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_key_is_refused_at_every_depth(manifests, validator, name):
    honest = json.loads(manifests[name])
    tried = 0
    for place in objects_in(honest):
        if is_by_name(place):
            continue
        data = copy.deepcopy(honest)
        at(data, place)["certified_k"] = 1000
        tried += 1

        assert is_refused(sealed_text(data)), place
        assert not validator.is_valid(data), place
    assert tried >= 14


@pytest.mark.parametrize("name", NAMES)
def test_a_repeated_key_is_refused_at_every_depth(manifests, name):
    """Also where both values are the same: a repetition is a bit of its own."""
    honest = json.loads(manifests[name])
    for place in objects_in(honest):
        own = at(honest, place)
        if not own:
            continue
        key = next(iter(own))
        marked = copy.deepcopy(honest)
        at(marked, place)["@"] = own[key]
        text = json.dumps(marked, indent=2, ensure_ascii=False) + "\n"

        assert is_refused(text.replace('"@":', json.dumps(key, ensure_ascii=False) + ":")), place


def test_the_first_of_two_levels_does_not_hide_the_last(manifests):
    text = manifests["mondrian"].replace('      "k": 5,\n', '      "k": 50,\n      "k": 5,\n', 1)

    with pytest.raises(ManifestRefusedError, match="twice"):
        Manifest.from_json(text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none_are_refused(manifests, number):
    for name in NAMES:
        honest = json.loads(manifests[name])
        for place in leaves_in(honest):
            if isinstance(at(honest, place), bool) or not isinstance(at(honest, place), int | float):
                continue
            if random.Random(f"{name}{place}{number}").random() > 0.3:
                continue
            data = copy.deepcopy(honest)
            at(data, place[:-1])[place[-1]] = "@number"
            text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"

            assert is_refused(text.replace('"@number"', number)), place


WRONG = [None, True, -1, 1.5, "", "word", [], [None], {}, {"a": 1}, 2**70]


@pytest.mark.parametrize("name", NAMES)
def test_reader_and_schema_refuse_the_same_types(manifests, validator, name):
    """Every entry is replaced by things of other types; what one of the two refuses, both refuse."""
    honest = json.loads(manifests[name])
    chooser = random.Random(name)
    for place in [*leaves_in(honest), *filter(None, objects_in(honest))]:
        for wrong in chooser.sample(WRONG, 2):
            data = copy.deepcopy(honest)
            at(data, place[:-1])[place[-1]] = wrong
            if place != ("digest",):
                data["digest"] = manifest_digest(data)

            assert any(problems_in(data)) is not validator.is_valid(data), (place, wrong)


def reordered(data, chooser):
    """Move one key to the end of its object."""
    places = [place for place in objects_in(data) if len(at(data, place)) > 1]
    own = at(data, chooser.choice(places))
    key = next(iter(own))
    own[key] = own.pop(key)
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


HIDDEN = {
    "a blank at a line's end": lambda text, chooser: text.replace(",\n", ", \n", chooser.randrange(1, 9)),
    "no last line end": lambda text, chooser: text[:-1],
    "one more line end": lambda text, chooser: text + "\n",
    "line ends of another system": lambda text, chooser: text.replace("\n", "\r\n"),
    "a tab": lambda text, chooser: text.replace("  ", "\t", 1),
    "an escape": lambda text, chooser: text.replace('"input"', '"\\u0069nput"'),
    "a number in another spelling": lambda text, chooser: text.replace('"rows": 1', '"rows": 0.1e1', 1),
    "a mark of byte order": lambda text, chooser: "\ufeff" + text,
    "another order of keys": lambda text, chooser: reordered(json.loads(text), chooser),
}


@pytest.mark.parametrize("how", HIDDEN)
def test_nothing_hides_in_the_bytes_of_a_manifest(manifests, how):
    for name in NAMES:
        for seed in range(6):
            text = HIDDEN[how](manifests[name], random.Random(f"{name}{seed}"))

            assert text != manifests[name]
            assert is_refused(text)


def test_a_message_shows_neither_keys_nor_values_of_a_manifest(manifests):
    data = json.loads(manifests["global-recoding"])
    data["recodings"][0]["Patient 7"] = "Patient 8"
    with pytest.raises(ManifestRefusedError, match=r"recodings\[0\]") as caught:
        parsed_manifest(sealed_text(data))

    assert "Patient" not in str(caught.value)


class TestWhatNamesTheOriginal:
    """A commitment, and no plain hash."""

    COMMITMENT = {"scheme": "hmac-sha256", "release": "0" * 32, "value": "a" * 64}  # noqa: RUF012

    def test_a_commitment_has_one_form(self, manifests, validator):
        data = json.loads(manifests["mondrian"])
        assert data["input"]["commitment"] is None
        data["input"]["commitment"] = self.COMMITMENT

        assert not is_refused(sealed_text(data))
        assert validator.is_valid(data)

    @pytest.mark.parametrize(
        "change",
        [{"scheme": "sha256"}, {"release": "0" * 31}, {"release": "G" * 32}, {"value": "a" * 63}, {"salt": "0"}],
    )
    def test_another_form_of_commitment_is_refused(self, manifests, validator, change):
        data = json.loads(manifests["mondrian"])
        data["input"]["commitment"] = self.COMMITMENT | change

        assert is_refused(sealed_text(data))
        assert not validator.is_valid(data)

    @pytest.mark.parametrize("part", ["input", "output", None])
    def test_no_plain_hash_of_the_original_or_the_project_fits_in(self, manifests, validator, part):
        data = json.loads(manifests["mondrian"])
        if part == "input":
            data["input"]["sha256"] = "a" * 64
        elif part == "output":
            data["output"]["order"] = "a" * 64
        else:
            data["project_sha256"] = None

        assert is_refused(sealed_text(data))
        assert not validator.is_valid(data)
