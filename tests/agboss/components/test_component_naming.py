"""Names by the letter are those that patterns gave."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss.components.naming import is_kebab, kebab, normal_name

NAMES = st.one_of(st.text(max_size=20), st.text("aZbY_-09. ", max_size=14))


@given(NAMES)
def test_a_kebab_name_is_that_of_the_pattern(name: str):
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", "-", name)
    assert kebab(name) == re.sub(r"-+", "-", spaced).strip("-").lower()


@given(NAMES)
def test_a_kebab_name_is_known_as_by_the_pattern(name: str):
    assert is_kebab(name) is bool(re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", name))


@given(NAMES)
def test_a_normal_name_is_that_of_the_pattern(name: str):
    folded = unicodedata.normalize("NFKC", name).casefold()
    assert normal_name(name) == (re.sub(r"[\W_]+", "-", folded).strip("-") or folded)


@pytest.mark.parametrize(
    ("name", "made"),
    [("FactChecker2", "fact-checker2"), ("fetch_page", "fetch-page"), ("HTTPServer", "http-server"), ("A", "a")],
)
def test_names_of_classes_and_functions(name: str, made: str):
    assert kebab(name) == made
