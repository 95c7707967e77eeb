"""The shipped examples are found in the file's text; what is written anew is read as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from routecodex.routing.config import read
from routecodex.routing.config.examples import NoExample, added, examples, uncommented, variables
from routecodex.routing.config.rewrite import rewritten

SHIPPED = (Path(__file__).parents[3] / "mitm-config.yaml").read_text()


def test_every_provider_example_is_found_and_nothing_else() -> None:
    assert list(examples(SHIPPED)) == ["anthropic", "openai", "glm", "deepseek", "openrouter", "gemini", "local"]
    assert examples("# --- example\n# x:\n#   no provider\n") == {}


def test_an_example_names_its_variables() -> None:
    glm = examples(SHIPPED)["glm"]
    assert variables(uncommented(SHIPPED, glm, [])) == ["GLM_KEY", "GLM_KEY_2"]
    assert variables(uncommented(SHIPPED, glm, ["/k"])) == []


def test_a_file_name_with_odd_letters_stays_what_it_is() -> None:
    text = added(SHIPPED, "glm", SHIPPED, ['/a "quoted" \\ path'])
    config = read(text, name="c", env={'file:/a "quoted" \\ path': "sk-x"})
    assert config.registry.providers["glm"].keys[0].value == "sk-x"


@pytest.mark.parametrize("end", ["", "\n", "\n  routing: {default: [origin]}\n"])
def test_a_line_that_ends_the_file_is_a_line(end: str) -> None:
    text = added(f"virtualrouter:\n  providers:{end}", "glm", SHIPPED, ["/k"])
    assert text.startswith("virtualrouter:\n  providers:\n    glm:\n")
    assert text.endswith("\n")
    assert "\n\n" not in text


def test_where_there_is_no_place_nothing_comes_of_it() -> None:
    for text in ("virtualrouter: {providers: {}}\n", "a:\n  providers:\nb:\n  providers:\n", ""):
        with pytest.raises(NoExample):
            added(text, "glm", SHIPPED, [])


@pytest.mark.parametrize(
    "name", ["4.10", "true", "null", "a: b", "x # y", "ключ", "'q'", '"', "0x10", "1e3", "-", "*a", "{x}", " x "]
)
def test_a_written_value_is_read_again(name: str) -> None:
    import json

    text = json.dumps(
        {
            "virtualrouter": {
                "providers": {"p": {"baseURL": "http://localhost/v1", "auth": "none", "models": {name: {}}}},
                "routing": {"default": [f"p.{name}"] if name.strip() == name else ["origin"]},
            }
        }
    )
    once, again = (read(form, name="c", env={}) for form in (text, rewritten(text, "c.json")))
    assert again.registry.providers == once.registry.providers
    assert again.registry.routes == once.registry.routes
