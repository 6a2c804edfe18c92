"""The last rung: a model, asked once per piece that nothing else links to a fact."""

from __future__ import annotations

from memx.diagnose.model_rung import ModelRung
from memx.model import Cause, DecidedBy, Fact
from tests.diagnose.talk import ask, diagnose, rows, verbatim
from tests.fake_openai import FakeOpenAI
from tests.llm.fixtures import models

ASKED = ask("What animals does Tomas have?", "two greyhounds", "a4")
PARAPHRASE = Fact("m1", "There is now a pair of sighthounds at the baker's house.")
OTHERS = [Fact("m2", "Ines climbed a mountain."), Fact("m3", "Tomas went shopping last week.")]


def test_a_paraphrase_that_no_wording_links_is_found_by_one_question() -> None:
    without = diagnose(ASKED, [PARAPHRASE, *OTHERS], rows(PARAPHRASE))
    assert without.cause is Cause.NEVER_STORED and without.llm_calls == 0

    def reply(body: dict[str, object]) -> str:
        text = str(body["messages"])
        number = next(one for one in range(1, 9) if f"{one}. There is now a pair" in text)
        return f'{{"notes": [{number}]}}'

    def embed(texts: list[str]) -> object:
        import numpy as np

        return np.array([[1.0, 0.0] if "hounds" in text else [0.0, 1.0] for text in texts]) * 0.5

    with FakeOpenAI(reply) as server, models(server) as clients:
        rung = ModelRung(clients.llm("m"))
        found = diagnose(ASKED, [PARAPHRASE, *OTHERS], rows(*OTHERS), model=rung, embed=embed)
        assert len(server.requests) == 1
        assert "Utterance by Tomas: I adopted two greyhounds" in str(server.requests)
    assert found.evidence[0].stored == ("m1",) and found.decided_by is DecidedBy.MODEL
    assert (found.cause, found.llm_calls) == (Cause.ABSENT, 1)


def test_an_unreadable_model_decides_nothing() -> None:
    with FakeOpenAI("I could not say.") as server, models(server) as clients:
        found = diagnose(ASKED, [PARAPHRASE, *OTHERS], rows(*OTHERS), model=ModelRung(clients.llm("m")))
    assert found.cause is Cause.NEVER_STORED and found.llm_calls == 1


def test_no_model_is_asked_where_provenance_or_wording_decide() -> None:
    with FakeOpenAI('{"notes": []}') as server, models(server) as clients:
        rung = ModelRung(clients.llm("m"))
        facts = verbatim(provenance=False)
        assert diagnose(ASKED, facts.values(), rows(facts["a4"]), model=rung).llm_calls == 0
        assert diagnose(ASKED, verbatim(without=["a4"]).values(), rows(), model=rung).llm_calls == 0
        assert server.requests == []
