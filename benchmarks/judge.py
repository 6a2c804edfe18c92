"""The offline judge against labels, under stress made from LoCoMo's gold answers, and its speed.

    python -m benchmarks.judge [--apart 4] [--seed 0]

Real data comes from ``MEMX_SHARED`` (or ``../shared``): ``data/judge_pairs_dev.jsonl``, ``data/locomo10.json``. Rules
were chosen on conversations 0 to 3. Questions whose gold is known to be wrong are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from rank_bm25 import BM25Okapi

from memx import dataset
from memx.engine.judges.contract import JudgeItem
from memx.engine.judges.offline import OfflineJudge
from memx.model import Candidate, CandidateSource, Outcome, Question, Retrieved
from memx.text.dates import dates_in
from memx.text.numbers import numbers_in
from memx.text.words import stems

DATA = Path(os.environ.get("MEMX_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data"
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
JUDGE = OfflineJudge()


@dataclass(frozen=True, slots=True)
class Pair:
    """A judged answer: ``source`` is ``fc`` (a real answer), ``v1`` (wrong on purpose) or ``v2`` (vague on purpose)."""

    conversation: int
    category: str
    source: str
    label: bool
    accepted: bool


def accepts(question: str, gold: str, answer: str, judge: OfflineJudge = JUDGE) -> bool:
    """True when the judge passes the answer."""
    asked = Question("q", "e", question or "?", gold, "")
    return judge.judge(JudgeItem(asked, Candidate(answer, CandidateSource.MODEL))).outcome is Outcome.PASS


def pairs() -> Iterator[Pair]:
    """The labelled answers of the file, judged."""
    wrong = wrong_golds()
    for line in (DATA / "judge_pairs_dev.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        question_id, source = row["id"].split("|")
        if question_id in wrong:
            continue
        kind = "fc" if source.startswith("fc") else source.removeprefix("ap:")
        accepted = accepts(row["question"], row["gold"], row["candidate"])
        yield Pair(int(question_id.split("_")[1]), row["category"], kind, row["label"], accepted)


def wrong_golds() -> set[str]:
    """Ids of the questions whose gold answer the errata correct."""
    samples = {sample["sample_id"]: index for index, sample in enumerate(locomo())}
    errata = json.loads((DATA / "locomo_errata.json").read_text("utf-8"))
    return {f"locomo_{samples[e['sample']]}_qa{e['index']}" for e in errata if e["gold"] != e["corrected_gold"]}


def locomo() -> list[dict]:
    """The conversations of LoCoMo."""
    return json.loads((DATA / "locomo10.json").read_text("utf-8"))


def report(name: str, chosen: Iterable[Pair]) -> None:
    """One line: agreement on real answers, and how many planted ones pass."""
    chosen = list(chosen)

    def share(source: str, label: bool) -> tuple[float, int]:
        picked = [pair.accepted for pair in chosen if pair.source == source and pair.label is label]
        return (sum(picked) / len(picked) if picked else float("nan")), len(picked)

    (true, trues), (false, falses) = share("fc", True), share("fc", False)
    accuracy = (true * trues + (1 - false) * falses) / (trues + falses)
    print(
        f"{name:24} {trues:5} {falses:5} {accuracy:9.3f} {(true + 1 - false) / 2:9.3f} {true:9.3f} {false:9.3f}"
        f" {share('v1', False)[0]:9.3f} {share('v2', False)[0]:9.3f}"
    )


def report_strict() -> None:
    """How many real answers ``strict`` judges, and how well."""
    wrong, judge = wrong_golds(), OfflineJudge(strict=True)
    agreed = []
    rows = [json.loads(line) for line in (DATA / "judge_pairs_dev.jsonl").read_text("utf-8").splitlines()]
    real = [row for row in rows if "|fc" in row["id"] and row["id"].split("|")[0] not in wrong]
    for row in real:
        asked = Question("q", "e", row["question"], row["gold"], "")
        outcome = judge.judge(JudgeItem(asked, Candidate(row["candidate"], CandidateSource.MODEL))).outcome
        if outcome is not Outcome.UNJUDGED:
            agreed.append((outcome is Outcome.PASS) == row["label"])
    print(f"strict: {len(agreed) / len(real):.3f} of real answers judged, accuracy {sum(agreed) / len(agreed):.3f}")


# ------------------------------------------------------------------------------------------------------------ stress


def stress(conversations: range, seed: int) -> dict[str, list[bool]]:
    """Answers made from gold answers, accepted or not, by kind."""
    dice = random.Random(seed)
    results: dict[str, list[bool]] = {}
    for sample in [locomo()[index] for index in conversations]:
        turns = [t for key, s in sample["conversation"].items() if re.fullmatch(r"session_\d+", key) for t in s]
        asked = [qa for qa in sample["qa"] if qa["category"] in CATEGORIES]
        for qa in asked:
            question, gold = qa["question"], str(qa["answer"])
            others = [o for o in asked if o["category"] == qa["category"] and alien(gold, str(o["answer"]))]
            other = str(dice.choice(others)["answer"])
            planted = {
                "gold in a sentence": f"From what was said, the answer is {gold}",
                "another question's gold": other,
                '"It was not GOLD"': f"It was not {gold}",
                '"GOLD or OTHER"': f"{gold.rstrip('.')} or {other}",
                "ten unrelated turns": " ".join(
                    turn["text"] for turn in dice.sample(turns, 10) if turn["dia_id"] not in qa["evidence"]
                ),
            }
            changed = change_value(gold, dice)
            if changed:
                planted["changed number or date"] = changed
            for kind, answer in planted.items():
                results.setdefault(kind, []).append(accepts(question, gold, answer))
    return results


def alien(gold: str, other: str) -> bool:
    """True when the two golds share no word, so that one cannot be right for the other."""
    return not set(re.findall(r"\w+", gold.lower())) & set(re.findall(r"\w+", other.lower()))


def change_value(gold: str, dice: random.Random) -> str | None:
    """The gold with its first date or number made another; None where it holds none."""
    dates = dates_in(gold)
    if dates:
        value = dates[0]
        moved = value.start + timedelta(days=max(value.days, 1) * dice.randint(3, 9) + 20)
        if value.unit == "year":
            return gold.replace(value.text, str(value.start.year + dice.randint(2, 5)))
        text = f"{moved:%d %B %Y}" if value.unit != "month" else f"{moved:%B %Y}"
        return gold.replace(value.text, text)
    # Not "this one" or "once": what counts nothing can not be changed.
    numbers = [number for number in numbers_in(gold) if number.text[0].isdigit() or number.kind == "duration"]
    if numbers:
        start, end = numbers[0].span
        said = re.sub(r"^\S+", str(int(numbers[0].value) % 90 + dice.randint(2, 7)), numbers[0].text)
        return gold[:start] + said + gold[end:] if said != numbers[0].text else None
    return None


# ---------------------------------------------------------------------------------------------------------- retrieval


def retrieval(top_k: int = 10) -> tuple[float, int]:
    """Agreement of the retrieval-only verdict with "all evidence turns are in the top k", and over how many questions.

    BM25 retrieves whole turns that do not tell where they come from, so the verdict has their text alone.
    """
    agreed = []
    for case in dataset("locomo", DATA / "locomo10.json").cases():
        turns = list(case.turns().values())
        ranked = BM25Okapi([stems(turn.content) or ["-"] for turn in turns])
        for question in case.questions:
            evidence = tuple(case.turns()[turn_id] for turn_id in question.evidence if turn_id in case.turns())
            if question.abstention or not evidence:
                continue
            best = ranked.get_scores(stems(question.text)).argsort()[::-1][:top_k]
            rows = tuple(Retrieved(str(at), f"{turns[at].speaker}: {turns[at].content}") for at in best)
            candidate = Candidate("\n".join(row.content for row in rows), CandidateSource.RETRIEVED)
            outcome = JUDGE.judge(JudgeItem(question, candidate, evidence, rows)).outcome
            label = {turn.turn_id for turn in evidence} <= {turns[at].turn_id for at in best}
            agreed.append((outcome is Outcome.PASS) == label)
    return sum(agreed) / len(agreed), len(agreed)


# ------------------------------------------------------------------------------------------------------------- speed


def speed(*, embeddings: bool) -> float:
    """Judgements a second of CPU, each text seen for the first time, loading the embedding model included."""
    rows = [json.loads(line) for line in (DATA / "judge_pairs_dev.jsonl").read_text("utf-8").splitlines()]
    code = (
        "import sys, json, time; from benchmarks.judge import OfflineJudge, accepts; rows = json.load(sys.stdin);"
        f"judge = OfflineJudge(embeddings={embeddings}); start = time.process_time();"
        "[accepts(r['question'], r['gold'], r['candidate'], judge) for r in rows];"
        "print(len(rows) / (time.process_time() - start))"
    )
    return float(run_python(code, json.dumps(rows)))


def import_seconds() -> float:
    """CPU seconds that importing the judge takes in a new interpreter, the interpreter's own start left out."""
    with_judge, bare = (
        min(float(run_python(f"import time; {what}; print(time.process_time())")) for _ in range(3))
        for what in ("import memx.engine.judges.offline", "pass")
    )
    return with_judge - bare


def run_python(code: str, stdin: str = "") -> str:
    """What the code prints in a new interpreter."""
    done = subprocess.run([sys.executable, "-c", code], input=stdin, capture_output=True, text=True, check=True)
    return done.stdout


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--apart", type=int, nargs="*", default=[4], help="conversations shown apart from the others")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    judged = list(pairs())
    columns = ("accuracy", "balanced", "true acc.", "false acc", "v1", "v2")
    print(f"{'':24} right wrong " + " ".join(f"{column:>9}" for column in columns))
    where: list[tuple[str, Callable[[Pair], bool]]] = [
        ("all", lambda pair: True),
        ("without those apart", lambda pair: pair.conversation not in args.apart),
        ("those apart", lambda pair: pair.conversation in args.apart),
    ]
    where += [
        (f"conversation {n}", lambda pair, n=n: pair.conversation == n)
        for n in sorted({p.conversation for p in judged})
    ]
    where += [(name, lambda pair, name=name: pair.category == name) for name in sorted(CATEGORIES.values())]
    for name, picks in where:
        report(name, filter(picks, judged))
    report_strict()
    for title, conversations in (("conversations 0-4", range(5)), ("conversations 5-9", range(5, 10))):
        print(f"\nstress on {title}: accepted")
        for kind, accepted in stress(conversations, args.seed).items():
            print(f"  {kind:26} {sum(accepted) / len(accepted):6.3f}  of {len(accepted)}")
    print("\nretrieval-only verdict against evidence labels: {:.4f} of {}".format(*retrieval()))
    print(f"\n{speed(embeddings=False):.0f} judgements a second of CPU by rules alone, "
          f"{speed(embeddings=True):.0f} with embeddings; import {import_seconds():.2f} s of CPU")  # fmt: skip


if __name__ == "__main__":
    main()
