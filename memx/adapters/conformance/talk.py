"""The small talk that the kit stores: every turn holds one made-up name that no other turn and no language has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memx.model import Question, Session, Turn

#: How many facts the paging check stores: more than the default page of any system we know (10, 20, 50, 100, 200).
MANY = 250
LONG_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Said:
    """One turn and the name in it that finds it again."""

    token: str
    session_id: str
    turn: Turn
    at: datetime

    @property
    def turn_id(self) -> str:
        """Id of the turn."""
        return self.turn.turn_id


def small_talk(first: datetime = datetime(2023, 5, 8, 13, 30)) -> list[Said]:
    """Three sessions of four turns, weeks apart, between two people."""
    lines = (
        ("I adopted a quokka named Brambolo.", "My boat is called Zelvira and is painted green."),
        ("I work in a bakery on Quistral Street.", "I started to learn the harp with Mr. Fenwarde."),
        ("My sister moved to the village of Ostrelle.", "We planted an apple tree called Pomdrune."),
        ("I bought a bicycle from a shop named Kettlovar.", "My favourite hike is the Marrowyn trail."),
        ("I take swimming lessons at Lake Ulvetta.", "I sold my old car to Dorrimund."),
        ("Our neighbour's parrot is called Skibbelo.", "I read a novel about the island Tavishmere."),
    )
    return _said("s", lines, ("Priyanka", "Tobias"), first, per_session=2)


def other_talk() -> list[Said]:
    """One session of another entity."""
    lines = (
        ("I adopted a hedgehog named Vintrolle.", "My boat is called Gorspeth and is painted red."),
        ("I work in a library on Numbrook Lane.", "I started to learn the cello with Ms. Jarovine."),
    )
    return _said("o", lines, ("Halvard", "Ximena"), datetime(2022, 2, 3, 10, 0), per_session=2)


def crowd(number: int) -> list[Said]:
    """Two turns for one of several entities that are used at once."""
    cat, garden = (("Ablorine", "Craynoll"), ("Bexwater", "Duskmead"))[number]
    lines = ((f"My cat number {number} is called {cat}.", f"The garden number {number} is called {garden}."),)
    return _said(f"c{number}-", lines, ("Nour", "Iskra"), datetime(2023, 1, 1, 9, 0), per_session=1)


def many() -> list[Said]:
    """As many turns as the paging check needs, in five sessions."""
    things = ("lamp", "chair", "kettle", "spade", "mirror", "basket", "drum", "carpet", "ladder", "bell")
    lines = tuple(
        (f"I keep the {things[n % 10]} with the label Item{n:03d}x in room {n}.",
         f"I lent the {things[(n + 1) % 10]} with the label Item{n + 1:03d}x to guest {n + 1}.")
        for n in range(0, MANY, 2)
    )  # fmt: skip
    return _said("p", lines, ("Priyanka", "Tobias"), datetime(2023, 3, 1, 8, 0), per_session=25)


def scripts() -> list[Said]:
    """Turns in many scripts, with what trips careless code: quotes, tags, braces, line breaks, joined emoji."""
    lines = (
        (
            "Żółwik Ślężan zjadł 東京 ramen 🍜 with أحمد and 👩‍👩‍👧.",
            "Café Ölünbor: naïve «señor» שלום, e\u0301 combined.",
        ),
        (
            '{"json": "Brackwell"}; DROP TABLE facts; -- \'quoted\' <b>bold</b> %s {0} \\n',
            "First line Mirvane\nsecond\tline.",
        ),
    )
    return _said("u", lines, ("Zoë Müller-Ñandú", "李小龍"), datetime(2023, 4, 1, 8, 0), per_session=2)


def long_talk() -> list[Said]:
    """One very long turn, with a name at its start and one at its end."""
    filler = "The weather was fine and we walked along the river. "
    text = f"Our journey began in Aldersprig. {filler * (LONG_CHARS // len(filler))}It ended in Zumbrevale."
    return _said("l", ((text, "Tell Grimmolt about it."),), ("Priyanka", "Tobias"), datetime(2023, 4, 2), 1)


def sessions(said: Sequence[Said], entity_id: str) -> list[Session]:
    """The turns as sessions of an entity, in order."""
    ids = list(dict.fromkeys(one.session_id for one in said))
    found = []
    for session_id in ids:
        inside = [one for one in said if one.session_id == session_id]
        found.append(Session(session_id, entity_id, tuple(one.turn for one in inside), inside[0].at))
    return found


def question_about(one: Said, entity_id: str) -> Question:
    """A question that the turn answers, for an adapter that is shown the gold; its text is what is searched for."""
    return Question(f"q-{one.turn_id}", entity_id, one.turn.content[:200], one.token, "check", (one.turn_id,))


def _said(
    prefix: str, lines: Sequence[tuple[str, str]], speakers: tuple[str, str], first: datetime, per_session: int
) -> list[Said]:
    found = []
    for number, pair in enumerate(lines):
        day = number // per_session
        session_id = f"{prefix}{day + 1}"
        for place, text in enumerate(pair):
            at = first + timedelta(days=21 * day, minutes=2 * number + place)
            turn = Turn(
                f"{session_id}:{number % per_session * 2 + place + 1}",
                speakers[place], ("user", "assistant")[place], text, at,
            )  # fmt: skip
            found.append(Said(_token(text), session_id, turn, at))
    return found


def _token(text: str) -> str:
    """The longest capitalised word that does not begin the text: the made-up name."""
    words = [word.strip(".,:;<>\"'{}«»") for word in text.split()]
    names = [word for word in words[1:] if word[:1].isupper()] or words[:1]
    return max(names, key=len)
