"""Files of a message as the library's content, and what its profiles tell of the files that a model takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pydantic_ai.messages import BinaryContent

from agboss_memory.messages import MediaPart, is_text

FLAGS = {
    "image": "supports_image_input",
    "audio": "supports_audio_file_input",
    "video": "supports_video_input",
}
"""The profile's word on each kind; documents are told type by type."""

VENDORS = frozenset({"openai", "anthropic", "google"})
"""Providers whose profile speaks of their own models. Behind a gateway it only says what could be transported."""


def accepts_of(provider: str, profile: Mapping[str, Any]) -> tuple[str, ...]:
    """Kinds and media types that a model takes by the library's profile; () when it does not tell."""
    if provider not in VENDORS:
        return ()
    kinds = tuple(kind for kind, flag in FLAGS.items() if profile.get(flag))
    if not profile.get("supports_document_input"):
        return kinds
    types: Collection[str] = profile.get("supported_document_media_types") or ()
    return (*kinds, *sorted(types))


def to_content(part: MediaPart) -> BinaryContent:
    """A file as the library wants it. Text of every type goes as plain text in UTF-8: adapters know no other."""
    if is_text(part.media_type):
        data = part.data.decode(errors="replace").encode()
        return BinaryContent(data=data, media_type="text/plain")
    return BinaryContent(data=part.data, media_type=part.media_type)
