"""What ``memx datasets pull`` can fetch: the official places, at fixed revisions, with checksums where known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from memx.adapters.datasets.locomo import FILE_NAME as LOCOMO_FILE
from memx.adapters.datasets.locomo import RELEASE_SHA256 as LOCOMO_SHA256
from memx.adapters.datasets.longmemeval import RELEASES, Release

_LOCOMO = "https://raw.githubusercontent.com/snap-research/locomo/3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376"
_LONGMEMEVAL = "https://huggingface.co/datasets/xiaowu0162"
_CLEANED, _ORIGINAL = "98d7416c24c778c2fee6e6f3006e7a073259d48f", "2ec2a557f339b6c0369619b1ed5793734cc87533"
_BEAM = "https://raw.githubusercontent.com/mohammadtavakoli78/BEAM/3e12035532eb85768f1a7cd779832b650c4b2ef9/chats"
#: Conversations of each tier of BEAM.
BEAM_SIZES = {"100K": 20, "500K": 35, "1M": 35, "10M": 10}
#: SHA-256 of chat and questions of the first conversations of BEAM's 100K tier.
_BEAM_SHA256 = (
    (
        "ea71efd5dcc13f7366d3737b45d532eadb3d1497f3d6f23d1fa1c4004d5ffdf2",
        "047398ff1497674b11585e7b4829c3d64d2d5e63f7f3572c826b73ca1faaf898",
    ),
    (
        "3a3bd796f4aa24e8f34e718dc2823ae942663349eb89054f03885051e2daf1c4",
        "d188e929644c9ef9fcd4520e7b5a3daf2c2e069b1247a324bd13d5aadd1ed96e",
    ),
    (
        "432d3ae5493c04a17a5b6b0ef7c012a70e70ac5cfcaef13059fca6bedb903009",
        "f53030f3753b0e0a93b330bc62d597cb66375c0c794094d7e69b7646df46e324",
    ),
    (
        "e0ef0f74b1f7ac911e8e0518722335c422cbc1112048e9909911b208c51fc027",
        "f69eda522cd7325830c8f78b6f02a571c992b6cf43311fa96f28043fd3c18dae",
    ),
    (
        "13ac88e483e0d63d3830479fe17f961af1b414503b5077914865eca1c48a1ce8",
        "bdd0819a911e46951dbf998905b8eba96a0cdb103cd3dda79ae9c6831e5f195d",
    ),
    (
        "5365cdc41da212fb7143cf9f191ff7862eed8e9ca175b3728fe593adedc87871",
        "7a6f88dfdeb3f1b582209a745e7c980158dbb2829a9ceae6cdb08bb868a00035",
    ),
    (
        "525271b1d24179dbc2deb664c69db0bbaead5938630a0b0d5cd2881b8b79224d",
        "2c00219e839d54c7cd3e4fbb396f8a2517fd9f143d3a3b8ea1c4fb9f5c4435c7",
    ),
    (
        "3207b8f5aa45cd1b2d1e2f37f224831b4696d0cc2352ef514af08f2092b6c239",
        "d279dbd8fd293692d29f0057b3dd2468ccb97c7da6df28ae2adc8481d9970148",
    ),
)


@dataclass(frozen=True, slots=True)
class Remote:
    """One file to fetch.

    Attributes:
        path: where it goes, below the dataset's folder in the cache.
        sha256: what it must hash to; empty where no checksum is known, and the revision in the URL alone fixes it.
        size: in bytes; 0 where not known.
        optional: it is no fault when the server does not have it.
    """

    url: str
    path: str
    sha256: str = ""
    size: int = 0
    optional: bool = False


def _longmemeval(part: str, folder: str, revision: str, name: str, release: Release) -> tuple[str, tuple[Remote, ...]]:
    url = f"{_LONGMEMEVAL}/{folder}/resolve/{revision}/{name}"
    return part, (Remote(url, f"{part}/{name}", release.sha256, release.size),)


def _beam(tier: str) -> Iterator[Remote]:
    for number in range(1, BEAM_SIZES[tier] + 1):
        chat, questions = "", ""
        if tier == "100K" and number <= len(_BEAM_SHA256):
            chat, questions = _BEAM_SHA256[number - 1]
        here, there = f"{tier}/{number}", f"{_BEAM}/{tier}/{number}"
        if not chat:
            # The release's own code reads the truncated chat where there is one.
            yield Remote(f"{there}/chat_trunecated.json", f"{here}/chat_trunecated.json", optional=True)
        yield Remote(f"{there}/chat.json", f"{here}/chat.json", chat)
        name = "probing_questions/probing_questions.json"
        yield Remote(f"{there}/{name}", f"{here}/{name}", questions)


_ORACLE, _S, _M, _S_CLEANED, _M_CLEANED = RELEASES
#: By dataset and part. The first part is the one meant when none is named.
DOWNLOADS: Mapping[str, Mapping[str, tuple[Remote, ...]]] = {
    "locomo": {"": (Remote(f"{_LOCOMO}/data/{LOCOMO_FILE}", LOCOMO_FILE, LOCOMO_SHA256, 2_805_274),)},
    "longmemeval": dict(
        [
            _longmemeval("s", "longmemeval-cleaned", _CLEANED, "longmemeval_s_cleaned.json", _S_CLEANED),
            _longmemeval("oracle", "longmemeval-cleaned", _CLEANED, "longmemeval_oracle.json", _ORACLE),
            _longmemeval("m", "longmemeval-cleaned", _CLEANED, "longmemeval_m_cleaned.json", _M_CLEANED),
            _longmemeval("s-original", "longmemeval", _ORIGINAL, "longmemeval_s", _S),
            _longmemeval("m-original", "longmemeval", _ORIGINAL, "longmemeval_m", _M),
        ]
    ),
    "beam": {tier: tuple(_beam(tier)) for tier in BEAM_SIZES},
}
