"""The judge without a model: what it accepts, what it rejects, and what its why says."""

import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memx.engine.judges.contract import JudgeItem
from memx.engine.judges.offline import OfflineJudge
from memx.model import Candidate, CandidateSource, Decider, Outcome, Question, Retrieved, Turn, Verdict
from memx.text.answers import contains_gold

WHEN = datetime(2024, 3, 20)


def judged(
    gold: str, answer: str, asked: str = "", *, strict: bool = False, category: str = "single-hop", **more: object
) -> Verdict:
    question = Question("q1", "e", asked or "?", gold, category, asked_at=WHEN, **more)  # type: ignore[arg-type]
    return OfflineJudge(strict=strict).judge(JudgeItem(question, Candidate(answer, CandidateSource.MODEL)))


@pytest.mark.parametrize(
    ("gold", "answer", "asked"),
    [
        # dates, as intervals
        ("9 March 2024", "Iva moved in on March 9th, 2024.", "When did Iva move in?"),
        ("The week before 14 March 2024", "On 9 March 2024", "When did Iva move in?"),
        ("2021", "In the spring of 2021", "When did Iva learn to sail?"),
        ("9 March 2024", "Eleven days ago, on 2024-03-09", "When did Iva move in?"),
        ("9 March 2024", "I moved in yesterday. (9 March 2024)", "When did Iva move in?"),
        ("19 March 2024", "I moved in yesterday. (It was cold.)", "When did Iva move in?"),
        ("February 2024", "last month", "When did Iva move in?"),
        # numbers and durations
        ("three", "She keeps 3 hens.", "How many hens does Iva keep?"),
        ("Twice", "Iva went there two times.", "How often did Iva go there?"),
        ("two weeks", "About 14 days", "How long did the trip last?"),
        ("a year", "About a year", "How long did Iva stay?"),
        ("7 days. 8 days (including the last day) is also acceptable.", "8 days ago", "How many days ago was that?"),
        ("25 minutes and 50 seconds (or 25:50)", "Her best time was 25:50.", "What is Iva's best time?"),
        ("Kelp", "STEP 1: Iva had rice. STEP 2: ... Final answer: kelp", "What did Iva eat?"),
        ("$90", "She paid $20 for tea and $70 for a lamp, $90 in total.", "How much did Iva spend?"),
        ("6:45 AM", "At a quarter to seven, 6:45 am", "When does Iva get up?"),
        ("The week before 3 June 2024", "Late May to early June 2024", "When did Iva move in?"),
        ("The first weekend of August 2024", "In early August 2024", "When did Iva move in?"),
        ("the week of August 12", "It was the week of August 12.", "When did Iva move in?"),
        ("2", "About two weeks ago", "How many weeks ago did I plant the peas?"),
        ("2", "14 days", "How many weeks ago did I plant the peas?"),
        ("1,998", "There are 1998 views: 542 of one film and 1,456 of the other.", "How many views do my films have?"),
        ("every week", "You see her weekly.", "How often do I see my coach?"),
        ("Three times a week", "She trains thrice weekly.", "How often does Iva train?"),
        ("To keep trying and not give up", "That one should persist", "What did Iva learn from it?"),
        ("He apologized", "He said sorry", "What did Boris do after the quarrel?"),
        # what was and what is
        ("4", "You used to have three boats, but since May you now own 4.", "How many boats do I own?"),
        ("250 ms", "The lookup went from 800 ms to 250 ms.", "How long does a lookup take?"),
        ("24:30", "Your previous best was 27:12, but you recently ran 24:30.", "What is my best time?"),
        ("$400,000", "It was $350,000, later raised to $400,000.", "How much is my loan?"),
        ("1,300", "You have 1300 followers, up from 1,250.", "How many follow me?"),
        ("27", "You are 32 and moved five years ago, so you were 27.", "How old was I when I moved?"),
        ("3", "1. A fern (May 2)\n2. A cactus\n3. A lily\n\nSo you bought **3 plants**.", "How many plants did I buy?"),
        ("25:50", "Your best is 25 minutes and 50 seconds.", "What is my best time?"),
        ("1 February 2023", "01.02.2023", "When did Iva move in?"),
        ("15 March 2024", "Am 15. März 2024", "Wann ist der Termin?"),
        ("15 March 2024", "Es el 15 de marzo de 2024.", "¿Cuándo es la cita?"),
        ("2023年2月1日", "2023年2月1日です。", "When did Iva move in?"),
        ("大阪", "田中さんは大阪に住んでいます。", "田中さんはどこに住んでいますか？"),
        ("二匹", "犬を二匹飼っています。", "田中さんは犬を何匹飼っていますか？"),
        # yes and no
        ("Yes", "Definitely, she cares deeply about the sea.", "Is Iva fond of the sea?"),
        ("Yes", "Yes, she would enjoy it.", "Would Iva enjoy a sailing course?"),
        ("Likely no; she gets seasick", "Probably not, boats make her ill", "Would Iva enjoy a cruise?"),
        ("No", "Iva would not enjoy a cruise.", "Would Iva enjoy a cruise?"),
        # lists
        ("violin, cello", "The cello and also the violin", "What does Iva play?"),
        ("tea, rye bread, plums", "Plums and tea", "What did Iva bring?"),
        # words, their forms and synonyms
        ("repairing old bicycles", "She repairs old bicycles as a hobby.", "What is Iva's hobby?"),
        ("her mother", "Her mom inspired her", "Who inspired Iva?"),
        ("glad", "She felt happy", "How did Iva feel?"),
        ("She was laid off", "Iva lost her job", "Why did Iva move?"),
        ("Iva's cottage; it is quiet there", "In her cottage", "Where does Iva write?"),
        ("a red kayak or canoe", "A canoe", "What did Iva rent?"),
        # other words for a statement
        ("To unwind and clear her mind", "To take a break and clear her head", "Why does Iva swim?"),
        ("warmth and happiness", "Positivity and joy", "What do tulips represent to Iva?"),
        ("“Blue Hour”", "Her favourite book is Blue Hour.", "What is Iva's favourite book?"),
    ],
)
def test_an_answer_that_means_the_gold_passes(gold: str, answer: str, asked: str) -> None:
    verdict = judged(gold, answer, asked)
    assert (verdict.outcome, verdict.decider) == (Outcome.PASS, Decider.RULE), verdict.why


@pytest.mark.parametrize(
    ("gold", "answer", "asked", "why"),
    [
        ("9 March 2024", "On 19 March 2024", "When did Iva move in?", "19 March 2024 does not fit"),
        ("9 March 2024", "Sometime in the spring of 2024", "When did Iva move in?", "spring of 2024 does not fit"),
        ("15 March 2024", "On 12 March 2024; you rescheduled it from 15 March 2024.", "When is it?", "does not fit"),
        (
            "15 March 2024",
            "On 12 March 2024, after you rescheduled it from 15 March 2024.",
            "When is it?",
            "does not fit",
        ),
        ("25:50", "Your best is 26 minutes and 50 seconds.", "What is my best time?", "no number"),
        ("2023年2月1日", "2023年2月3日です。", "When did Iva move in?", "does not fit"),
        (
            "大阪の病院で働いています",
            "東京の銀行で働いています。",
            "田中さんはどこで働いていますか？",
            "lacks 大阪, 病院",
        ),
        ("二匹", "犬を三匹飼っています。", "田中さんは犬を何匹飼っていますか？", "lacks 二匹"),
        ("9 March 2024", "After her exams", "When did Iva move in?", "no date"),
        ("9 March 2024", "9 March 2024 or 4 May 2024", "When did Iva move in?", "leaves open"),
        ("The week before 7 July 2024", "Late June 2024, after the rain", "When did Iva move in?", "does not fit"),
        ("every week", "Every two weeks", "How often do I see my coach?", "says Every two weeks, not every week"),
        ("24:30", "Your best used to be 24:30, but it is now 23:10.", "What is my best time?", "23:10 is not 24:30"),
        ("two hens and a dog", "A dog and a hen", "What pets does Iva have?", "counts one, not two hens"),
        ("oat milk porridge", "Almond milk porridge", "What did Iva cook?", "says Almond for oat"),
        ("a shade of gray", "A shade of blue", "What colour is Iva's door?", "lacks gray"),
        ("She joined a nearby choir", "She joined a local band", "What did Iva do?", "says band for choir"),
        (
            "sowed peas, dug a pond, built a shed",
            "A shed, then a pond, then peas",
            "What is the order of Iva's jobs?",
            "order",
        ),
        (
            "harp",
            "Iva owns a harp. There is no mention of her playing any instrument.",
            "Which instrument does Iva play?",
            "known",
        ),
        ("No, she gets seasick", "No, she gets seasick or a heron", "Would Iva enjoy a cruise?", "leaves open"),
        ("8,600 (5,700 and 2,900)", "8,600 (5,700 and 2,900) or a kayak", "How much is it?", "leaves open"),
        ("half in January, the rest in June", "half in July, the rest in June", "When is it paid?", "July is not"),
        ("on Sunday the 15th, in the garden", "on Sunday the 20th, in the garden", "Where and when?", "20th is not"),
        ("three", "She keeps four hens.", "How many hens does Iva keep?", "four is not three"),
        ("three", "A few", "How many hens does Iva keep?", "is not three"),
        ("Two cats and a dog", "Two dogs and a cat", "What pets does Iva have?", "counts Two dogs"),
        ("$90", "She paid $90 for a lamp and $20 for tea, so $110.", "How much did Iva spend?", "$110 is not $90"),
        ("9 am", "At 9:30 am", "When does Iva leave?", "9:30 am is not 9 am"),
        ("Iva", "Boris moved first, before Iva.", "Who moved first, Iva or Boris?", "puts Boris first"),
        ("Yes", "No, she gets seasick", "Would Iva enjoy a cruise?", "says no"),
        ("Yes", "Rye bread and plums", "Would Iva enjoy a cruise?", "neither yes nor no"),
        ("Yes", "Yes or no", "Would Iva enjoy a cruise?", "leaves open"),
        ("violin", "She plays the cello", "What does Iva play?", "lacks violin"),
        ("violin", "It was not the violin", "What does Iva play?", "what it was not"),
        ("violin", "She sold her harp and never played the violin", "What does Iva play?", "lacks violin"),
        ("violin", "violin or trumpet", "What does Iva play?", "leaves open"),
        ("violin", "The conversation does not mention that.", "What does Iva play?", "not known"),
        ("violin", "", "What does Iva play?", "no answer was given"),
        ("violin", " ... ", "What does Iva play?", "no answer was given"),
        ("violin, cello, harp, drums", "The violin, the flute and the horn", "What does Iva play?", "lacks cello"),
        ("Nadia, Boris, Tom", "Nadia and Tom", "Who are Iva's sons and daughters?", "lacks Boris"),
        ("Good Neighbours", "A club where neighbours meet", "Which charity did Iva choose?", "lacks"),
        ("a red kayak", "She rented something for the lake", "What did Iva rent?", "lacks red, kayak"),
    ],
)
def test_an_answer_that_does_not_fails_and_says_why(gold: str, answer: str, asked: str, why: str) -> None:
    verdict = judged(gold, answer, asked)
    assert verdict.outcome is Outcome.FAIL, verdict.why
    assert why in verdict.why


def test_of_a_long_text_only_what_speaks_of_the_question_counts() -> None:
    chatter = " ".join(
        f"We saw the {word} by the river and had soup." for word in ("mill", "weir", "ford", "quay", "lock")
    )
    unrelated = f"{chatter} Boris tunes a violin. {chatter} The weather was mild. {chatter}"
    assert judged("violin", unrelated, "Which instrument does Iva practise?").outcome is Outcome.FAIL
    told = f"{chatter} The instrument that Iva practises is the violin. {chatter} The weather was mild. {chatter}"
    assert judged("violin", told, "Which instrument does Iva practise?").outcome is Outcome.PASS


REPORT = (
    "You asked how to store the harvest of 14 beds, then compared cellars, crates and sand, and chose dry sand in"
    " wooden crates because the shed keeps frost away until January, when the 6 crates nearest the door go first."
)


def test_a_long_gold_answer_repeated_with_another_number_or_with_an_or_fails() -> None:
    assert judged(REPORT, REPORT).outcome is Outcome.PASS
    changed = judged(REPORT, REPORT.replace("6 crates", "9 crates"))
    assert (changed.outcome, changed.why) == (Outcome.FAIL, "the answer says 9, not 6")
    either = judged(REPORT, f"{REPORT.rstrip('.')} or a metal cupboard")
    assert (either.outcome, "leaves open" in either.why) == (Outcome.FAIL, True)


def test_the_words_of_a_statement_stand_close_together_in_a_talk() -> None:
    gold = (
        "Carrots stay fresh in dry sand, onions hang in old stockings near the stove, apples lie wrapped in newspaper"
    )
    first, second, third = (f"{part.strip().capitalize()}." for part in gold.split(","))
    things = ["boat", "lamp", "drum", "flute", "kite", "ladder", "mirror", "needle", "organ", "paddle", "quilt", "rope"]
    filler = " ".join(f"Then Iva told of her {thing} and the neighbour's {thing} machine." for thing in things)
    together = f"{filler} {filler} {first} {second} {third} {filler} {filler}"
    assert judged(gold, together).outcome is Outcome.PASS
    scattered = f"{first} {filler} {filler} {second} {filler} {filler} {third}"
    assert judged(gold, scattered).outcome is Outcome.FAIL


def test_an_abstention_question_is_passed_by_a_refusal_alone() -> None:
    trap = {"abstention": True, "metadata": {"trap": "a red kayak"}}
    asked = "What did Boris rent at the lake?"
    assert judged("Not mentioned", "That was never mentioned.", asked, **trap).outcome is Outcome.PASS
    assert judged("Not mentioned", "Boris did not rent anything at the lake.", asked, **trap).outcome is Outcome.PASS
    fallen = judged("Not mentioned", "He rented a red kayak.", asked, **trap)
    assert (fallen.outcome, "falls for 'a red kayak'" in fallen.why) == (Outcome.FAIL, True)
    for refusal in (
        "I can't find anything about that.",
        "You mentioned his tent, but not what he rented.",
        "That hasn't come up in our conversations.",
    ):
        assert judged("Not mentioned", refusal, asked, **trap).outcome is Outcome.PASS
    assert judged("Not mentioned", "A tent", asked, **trap).outcome is Outcome.FAIL
    assert judged("Not mentioned", "Not mentioned, but he rented a red kayak.", asked, **trap).outcome is Outcome.FAIL
    assert judged("Not mentioned", "", asked, **trap).outcome is Outcome.FAIL


def test_retrieved_text_is_judged_by_evidence_and_cannot_refuse() -> None:
    turn = Turn("D1:3", "Iva", "user", "I rented a red kayak for the summer.")
    row = Retrieved("f1", "Iva rented a red kayak for the summer.", metadata={"source_turn_ids": ["D1:3"]})
    candidate = Candidate(row.content, CandidateSource.RETRIEVED)
    asked = Question("q1", "e", "What did Iva rent?", "a red kayak", "single-hop", evidence=("D1:3",))
    judge = OfflineJudge()
    assert judge.judge(JudgeItem(asked, candidate, (turn,), (row,))).outcome is Outcome.PASS
    assert judge.judge(JudgeItem(asked, candidate, (turn,), ())).outcome is Outcome.FAIL
    refusal = Question("q2", "e", "What did Boris rent?", "", "adversarial", abstention=True)
    assert judge.judge(JudgeItem(refusal, candidate, (), (row,))).outcome is Outcome.UNJUDGED


def test_strict_gives_no_verdict_where_it_would_guess() -> None:
    half = ("mild curry, flat bread and plums", "Curry, bread", "What did Iva cook?")
    assert judged(*half).outcome is Outcome.PASS
    strict = judged(*half, strict=True)
    assert (strict.outcome, "it would pass" in strict.why) == (Outcome.UNJUDGED, True)
    assert judged("violin", "The violin", "What does Iva play?", strict=True).outcome is Outcome.PASS
    assert judged("violin", "A cello", "What does Iva play?", strict=True).outcome is Outcome.FAIL
    rubric = judged("She would like quiet places", "Quiet places", strict=True, category="single-session-preference")
    assert rubric.outcome is Outcome.UNJUDGED


def test_other_words_are_no_matter_of_names_kinds_or_things() -> None:
    for gold, answer, asked in (
        ("Sweden", "A country in the north", "Where is Iva from?"),
        ("play the piano", "play the guitar", "What is Iva learning?"),
        ("pottery, camping, painting", "Various creative and outdoor hobbies", "What does Iva like?"),
        ("To unwind and clear her mind", "To win the race in Oslo", "Why does Iva swim?"),
    ):
        assert judged(gold, answer, asked).outcome is Outcome.FAIL
    by_rules = OfflineJudge(embeddings=False)
    asked = Question("q1", "e", "What do tulips represent to Iva?", "warmth and happiness", "single-hop")
    candidate = Candidate("Positivity and joy", CandidateSource.MODEL)
    assert by_rules.judge(JudgeItem(asked, candidate)).outcome is Outcome.FAIL


def test_diagnosis_asks_whether_a_text_surely_holds_the_gold() -> None:
    question = Question("q1", "e", "What did Iva rent?", "a red kayak", "single-hop")
    assert contains_gold(question, "She rented a red kayak.")
    assert not contains_gold(question, "She rented a kayak.")
    refusal = Question("q2", "e", "What did Boris rent?", "Not mentioned", "adversarial", abstention=True)
    assert contains_gold(refusal, "It is not mentioned.")


PIECES = """yes|no|or|not|It was|9 March 2024|last week|two|cats|a few|and|,|;|violin|cello|don't know|not mentioned
|but|\x1b[31m|\u202e|🙂|half|$40|"Blue|Hour"|.|because|never|Iva's|%|1.|-|(|]|None|\x00|é|½|weekend before|2023"""
texts = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES.split("|")), max_size=12).map(" ".join))


@given(texts, texts, texts, st.booleans())
def test_any_three_texts_get_a_verdict_with_a_reason(asked: str, gold: str, answer: str, abstention: bool) -> None:
    verdict = judged(gold, answer, asked, abstention=abstention)
    assert verdict.outcome in (Outcome.PASS, Outcome.FAIL)
    assert verdict.why
    assert verdict == judged(gold, answer, asked, abstention=abstention), "the same texts get the same verdict"


@given(texts, texts)
def test_the_gold_itself_always_passes(asked: str, gold: str) -> None:
    if any(char.isalnum() for char in gold):
        assert judged(gold, gold, asked).outcome is Outcome.PASS


def test_importing_the_judge_brings_no_heavy_package() -> None:
    code = (
        "import sys, memx.engine.judges.offline; print([m for m in ('numpy', 'openai', 'textual') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_real_answers_are_judged_as_their_labels_say(shared_data: Path) -> None:
    import json

    rows = [
        json.loads(line) for line in (shared_data / "data" / "judge_pairs_dev.jsonl").read_text("utf-8").splitlines()
    ]
    real = [row for row in rows if row["source"].startswith("fc")][::10]
    right = [
        judged(row["gold"], row["candidate"], row["question"]).outcome is Outcome.PASS for row in real if row["label"]
    ]
    wrong = [
        judged(row["gold"], row["candidate"], row["question"]).outcome is Outcome.PASS
        for row in real
        if not row["label"]
    ]
    assert sum(right) / len(right) > 0.85
    assert sum(wrong) / len(wrong) < 0.12
