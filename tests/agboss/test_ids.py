"""Ids that agboss gives."""

from __future__ import annotations

import uuid

import pytest

from agboss import units


def test_an_id_is_a_uuid_of_version_7_and_none_comes_twice() -> None:
    made = [units.new_id() for _ in range(1000)]
    assert len(set(made)) == 1000
    for text in made:
        known = uuid.UUID(text)
        assert (str(known), known.version, known.variant) == (text, 7, uuid.RFC_4122)


def test_ids_sort_by_the_millisecond_in_which_they_were_made(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(1_700_000_000_000_000_000, 1_700_000_000_100_000_000, 1_000_000))
    monkeypatch.setattr(units.time, "time_ns", lambda: next(moments))
    made = [units.new_id() for _ in range(100)]
    assert made == sorted(made)
    assert int(made[0].replace("-", "")[:12], 16) == 1_700_000_000_000
