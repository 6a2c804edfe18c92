"""Whatever a store holds and a search returns, there is a diagnosis that says of itself how sure it is."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memx.diagnose.diagnoser import Diagnoser
from memx.model import Candidate, CandidateSource, Fact, FactStatus, Question, Retrieved, Stage
from tests.diagnose.talk import FAIL, LINES, case, history

ids = st.sampled_from(["m1", "m2", "m3", "m4", "ghost"])
turn_ids = st.sampled_from(["a3", "a4", "b4", "z9", "s1"])
said = st.sampled_from([text for _, lines in LINES.values() for _, _, text in lines])
texts = st.one_of(said, st.text(max_size=40), st.just(""), st.just("[/bold] \x1b[31m \u202e 🦊"))
facts = st.lists(
    st.builds(
        Fact,
        ids,
        texts,
        st.sampled_from(list(FactStatus)),
        st.lists(ids, max_size=2).map(tuple),
        st.lists(turn_ids, max_size=2).map(tuple),
    ),
    max_size=6,
)
rows = st.lists(st.builds(Retrieved, ids, texts, st.none() | st.floats(0, 1), st.just({"token": 0.5})), max_size=6)
questions = st.builds(
    Question,
    st.just("q1"),
    st.just("talk"),
    st.sampled_from(["When does the choir rehearse?", "What are Tomas's dogs called?", "?", ""]),
    st.sampled_from(["Monday at 8 pm", "Pixel and Moss", "Yes", "", "3 March 2024", "not mentioned"]),
    st.just("test"),
    st.lists(turn_ids, max_size=3).map(tuple),
    abstention=st.booleans(),
    metadata=st.sampled_from([{}, {"stale_evidence": ["a3"]}, {"dangling_evidence": ["z9"]}]),
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(facts, min_size=1, max_size=3),
    questions,
    rows,
    st.integers(1, 4),
    st.none() | st.builds(Candidate, texts, st.sampled_from(list(CandidateSource))),
)
def test_there_is_always_one_diagnosis(
    stores: list[list[Fact]], question: Question, retrieved: list[Retrieved], top_k: int, candidate: Candidate | None
) -> None:
    *early, last = stores
    steps = [(session.session_id, some) for session, some in zip(case().sessions, early, strict=False)]
    found = Diagnoser(history(last, steps)).diagnose(question, retrieved, top_k, candidate, FAIL)
    assert found.why
    assert all(piece.rank is None or piece.rank <= len(retrieved) for piece in found.evidence)
    if found.stage is Stage.EXTRACTION:
        assert any(not piece.stored for piece in found.evidence)
    if found.stage is Stage.RETRIEVAL:
        assert any(not piece.in_top_k or "budget" in piece.note for piece in found.evidence) or found.facts
