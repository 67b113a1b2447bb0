"""What a drafting model says in the tests, and in the recording `examples/sheet/drafts.jsonl`, which this module makes:

    python plugins/authoring/tests/scripted_drafts.py

It also makes `judged.jsonl` beside it, for the example of answers that are judged against their reference answers. The
model has no memory: a question that is asked in the same words gets the same reply.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from karenina_core.testing import Reply, ScriptedServer, ServedRequest

ROOT = Path(__file__).parents[3]
SHEET = ROOT / "examples" / "sheet" / "questions.csv"
RECORDING = ROOT / "examples" / "sheet" / "drafts.jsonl"
JUDGED = RECORDING.with_name("judged.jsonl")
MODEL = "drafting-model"
EXPLAINED = "An explanation has no single value; what counts is whether it names this cause"


def fact(field: str, kind: str, *expected: str, **more: Any) -> dict[str, Any]:
    """A field of a plan."""
    empty = {"aliases": [], "unit": None, "tolerance": None, "boolean_reason": None}
    return {"why": f"It decides {field}", "field": field, "type": kind, "expected": [*expected], **empty, **more}


def claim(field: str) -> dict[str, Any]:
    """A field that is yes or no, with its reason."""
    return fact(field, "yes/no", "yes", boolean_reason=EXPLAINED)


Steps = Sequence[tuple[Sequence[Mapping[str, Any]], Mapping[str, str]]]
"""Of one question: the fields and their descriptions, before and after the proof."""


def once(*fields: Mapping[str, Any], **descriptions: str) -> Steps:
    return [(fields, descriptions)]


DRAFTS: Mapping[str, Steps] = {
    "Name the four chambers": once(
        fact("chambers", "list", "left atrium", "right atrium", "left ventricle", "right ventricle"),
        chambers="Every chamber of the heart that the response names, each with its side, one entry for each",
    ),
    "Why does a mutation in a stop codon": once(
        claim("reads_on"),
        reads_on="Whether the response says that the ribosome goes on beyond the usual end; false if not",
    ),
    "What do restriction enzymes do": once(
        claim("specific_cut"),
        specific_cut="Whether the response says that they cut at particular sites of DNA; false if it says otherwise",
    ),
    "Why is ice less dense": once(
        claim("open_lattice"),
        open_lattice="Whether the response explains it by the open structure that bonds between molecules make",
    ),
    "What is an isotope": once(
        fact("differing_particle", "text", "neutron", aliases=["neutrons", "number of neutrons"]),
        differing_particle="The kind of particle whose number differs between the atoms, by its name",
    ),
    "What does the second law": once(
        fact("direction", "choice: decreases | increases | never decreases | never increases", "never decreases"),
        direction="What the response says that the entropy of an isolated system does",
    ),
    "Why do stars twinkle": once(
        fact("where", "text", "atmosphere", aliases=["the atmosphere", "Earth's atmosphere", "air"]),
        where="What the light passes through that makes it flicker, by its name",
    ),
    "Why does the west coast of Norway": once(
        fact("current", "text", "Norwegian Current", aliases=["Gulf Stream", "North Atlantic Current"]),
        current="The ocean current that the response makes responsible, by its name",
    ),
    "Why did the Bronze Age": once(
        fact("metals", "list", "copper", "tin"),
        metals="The metals that the response says had to be brought together",
    ),
    "Why can a number not be divided": once(
        claim("no_inverse"),
        no_inverse="Whether the response says that no number can be the result; false if it gives another reason",
    ),
    "What does a p-value": [
        (
            [fact("probability", "number", "3", unit="percent", tolerance="95 %")],
            {"probability": "The probability that the response states for data as extreme as these"},
        ),
        (
            [fact("probability", "number", "3", unit="percent", tolerance="1 %")],
            {"probability": "The probability that the response states for data as extreme as these"},
        ),
    ],
    "What is a sonnet": [
        ([fact("lines", "whole number", "14")], {"lines": "The number of lines of the poem, which should be 14"}),
        ([fact("lines", "whole number", "14")], {"lines": "The number of lines of the poem, in digits"}),
    ],
    "What does allegro mean": [
        (
            [fact("tempo", "text", "fast and lively", aliases=["fast", "lively", "quick"])],
            {"tempo": "The tempo that the response gives; it is right if it says fast and lively"},
        )
    ]
    * 2,
    "What is a deadlock": once(
        claim("circular_wait"),
        circular_wait="Whether the response says that several processes are held up by one another without an end",
    ),
}
"""By the beginning of the question."""


def drafted(request: ServedRequest, drafts: Mapping[str, Steps] = DRAFTS) -> Reply:
    """The reply of the model to a request of `karenina benchmark draft`."""
    user = next(message["content"] for message in request.messages if message["role"] == "user")
    steps = next(steps for beginning, steps in drafts.items() if f"\n{beginning}" in user)
    planning = "Plan the fields." in user or "put it to the proof" in user
    again = "put it to the proof" in user or "named a value that an answer could give" in user
    fields, descriptions = steps[-1 if again else 0]
    reply = {"plan": "The fields decide; the rest explains.", "fields": list(fields)} if planning else descriptions
    return Reply(json.dumps(reply), usage=(len(user) // 4, len(json.dumps(reply)) // 4))


def arguments(server: ScriptedServer) -> list[str]:
    """What says that the scripted model drafts."""
    return ["--model", MODEL, "--interface", "openai_endpoint", "--base-url", server.url]


ANSWERS: Mapping[str, tuple[str, str, str]] = {
    "Why do stars twinkle?": ("Moving air bends their light.", "agrees", "Moving air is the turbulence that counts."),
    "What is a sonnet?": ("A song for one voice.", "contradicts", "A song is no poem of 14 lines."),
    "What is a deadlock?": ("Processes that wait.", "incomplete", "It does not say that they wait for each other."),
}
"""The answer, how it relates to the reference answer, and why."""


def judged(request: ServedRequest) -> Reply:
    """The replies of a model that answers, and of one that compares with the reference answer."""
    answer, agreement, reasoning = next(found for text, found in ANSWERS.items() if text in request.text)
    reply = answer if request.schema is None else {"reasoning": reasoning, "agreement": agreement}
    return Reply(reply)


def main(invoke: Callable[[Sequence[str]], int]) -> None:
    with ScriptedServer(drafted) as server, tempfile.TemporaryDirectory() as folder:
        RECORDING.unlink(missing_ok=True)
        line = ["benchmark", "draft", str(SHEET), "-o", f"{folder}/drafted.jsonld", "--record", str(RECORDING)]
        print("exit code", invoke([*line, *arguments(server), "--concurrency", "1"]))
    with ScriptedServer(judged) as server, tempfile.TemporaryDirectory() as folder:
        JUDGED.unlink(missing_ok=True)
        chosen = "why-do-stars-twinkle,what-is-a-sonnet,what-is-a-deadlock"
        line = ["verify", str(SHEET), "--questions", chosen, "--judge-with", "reference", "--record", str(JUDGED)]
        for role in ("answering", "parsing"):
            line += [f"--{role}-model", f"{role}-model", f"--{role}-interface", "openai_endpoint"]
            line += [f"--{role}-base-url", server.url]
        print("exit code", invoke([*line, "--out", f"{folder}/run", "--concurrency", "1"]))


if __name__ == "__main__":
    from karenina_cli.root import karenina

    sys.exit(main(lambda line: karenina.main(line, standalone_mode=False)))
