"""Sources of parts, and the verb that prints them."""

import json
import re
from pathlib import Path

import pytest

import pernn
from command_line import succeed
from pernn.errors import ConfigError
from pernn.lab.citing import STATISTICS, cite, entries
from pernn.lab.config import Registry
from pernn.lab.runs import RunSpec

ROOT = Path(__file__).parents[1]
BUILTIN = [(one, kind) for one in Registry.all for kind in one.builtin]


@pytest.mark.parametrize(("registry", "kind"), BUILTIN, ids=lambda one: str(one)[:20])
def test_every_part_of_ours_says_what_it_builds_on(registry, kind):
    """An empty tuple says that it is ours; what a base class says does not count."""
    assert set(vars(registry.find(kind))["references"]) <= entries().keys()


def test_every_entry_is_cited_and_what_is_no_source_is_said(tmp_path):
    keys = {key for registry, kind in BUILTIN for key in registry.find(kind).references}
    assert keys | {*STATISTICS, "pernn", "morita2024"} == entries().keys()
    with pytest.raises(ConfigError, match="neither a run's directory"):
        cite(str(tmp_path))


def test_entries_are_bibtex_and_pernn_is_cited_as_its_own_file_says():
    for key, entry in entries().items():
        assert re.match(rf"@\w+\{{{key},\n", entry)
        assert entry.count("{") == entry.count("}")
        fields = re.findall(r"^  (\w+) = \{.+\},?$", entry, re.MULTILINE)
        assert {"title", "author"} <= {*fields}
        assert len(fields) == len(entry.splitlines()) - 2
        assert not entry.rstrip("\n}").endswith(",")
    said = (ROOT / "CITATION.cff").read_text()
    assert f"version: {pernn.__version__}\n" in said
    assert f"version = {{{pernn.__version__}}}" in entries()["pernn"]
    title = re.search(r"title = \{(.*)\}", entries()["pernn"])
    assert f'title: "{title[1]}"' in said


def test_a_run_has_the_sources_of_its_parts_and_an_experiment_those_of_all_arms(tmp_path):
    spec = RunSpec().override({"core.kind": "gru", "encoding.kind": "sinusoidal"})
    (tmp_path / "spec.json").write_text(json.dumps(spec.dump()))
    done = succeed("cite", tmp_path)
    found = re.findall(r"^@\w+\{(.*),$", done.stdout, re.MULTILINE)
    assert {*found} == {"pernn", "morita2024", "cho2014", "vaswani2017"}
    assert len(found) == 4
    done = succeed("cite", "language_modelling", "--scale", "paper", "--json")
    content = json.loads(done.stdout)
    assert content["parts"]["wikitext"] == ["merity2017"]
    assert content["parts"]["statistics"] == [*STATISTICS]
    assert content["parts"]["none"] == []
    assert content["entries"]["hochreiter1997"] == entries()["hochreiter1997"]
