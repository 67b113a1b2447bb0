"""That templates are apart from karenina, from one another, and from what they said before."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from karenina_sandbox.runtime import SandboxRuntime

from karenina_core.errors import TemplateError

sys.path.append(str(Path(__file__).parent))
from sandboxed import MIXED, PRIMITIVES, RIGHT, children, judged, runs, source


def end_workers(runtime: SandboxRuntime) -> None:
    for worker in children(runtime.pool.server.pid):
        os.kill(worker, signal.SIGKILL)
        while runs(worker):
            time.sleep(0.01)


POISON = """
import builtins, gc, json, os, random, re, sys, warnings
import karenina_sandbox.frames, karenina_sandbox.worker, pydantic
len(open.__doc__)
os.environ["POISON"] = "1"
sys.path.append("/poison")
sys.modules["poison"] = json
builtins.poison = True
BaseAnswer.poison = True
BaseAnswer.verify = lambda self: True
ExactMatch.check = lambda self, *values: True
pydantic.Field.__kwdefaults__ = {}
json.loads = json.dumps = lambda *_, **__: None
re.compile = lambda *_: None
random.seed(1)
sys.setrecursionlimit(77777)
karenina_sandbox.worker.pickle = None
karenina_sandbox.frames._write = repr
for found in gc.get_objects():
    if type(found) is dict and "karenina_core" in found:
        found["poison"] = True
"""
CLEAN = """
import builtins, json, os, random, re, sys
import karenina_sandbox.worker

def poisoned():
    return (
        "POISON" in os.environ or "/poison" in sys.path or "poison" in sys.modules or hasattr(builtins, "poison")
        or hasattr(BaseAnswer, "poison") or json.dumps(1) != "1" or re.compile("x") is None
        or sys.getrecursionlimit() == 77777 or karenina_sandbox.worker.pickle is None
    )
"""


def test_what_a_template_changes_is_changed_in_its_own_process_only(runtime: SandboxRuntime) -> None:
    for number in range(3):
        with suppress(TemplateError):
            asyncio.run(judged(runtime, source(f"return {number} > -1", POISON)))
    assert asyncio.run(judged(runtime, source("return not poisoned()", CLEAN))).result is True
    assert asyncio.run(judged(runtime, MIXED, RIGHT)).result is True
    wrong = source("return self.said == 'y'")
    assert asyncio.run(judged(runtime, wrong)).result is False


DRAWN = """
class Answer(BaseAnswer):
    said: str = Field(description="DRAWN")

    @classmethod
    def model_json_schema(cls, *given, **named):
        import os
        found = super().model_json_schema(*given, **named)
        found["properties"]["said"]["description"] = str(os.getpid())
        return found

    def verify(self):
        return True
"""


def test_a_template_that_says_something_else_when_it_is_loaded_again_changes_nothing(runtime: SandboxRuntime) -> None:
    async def run() -> None:
        handle = await runtime.load(DRAWN, PRIMITIVES)
        before = (handle.schema(), handle.fields(), handle.ground_truth())
        filled = await handle.build({"said": "x"})
        end_workers(runtime)
        assert (await filled.verify("")).result is True
        assert (handle.schema(), handle.fields(), handle.ground_truth()) == before
        again = await runtime.load(DRAWN, PRIMITIVES)
        assert again.schema() != before[0], "the template did not change"

    asyncio.run(run())


def test_other_fields_than_at_first_are_an_error(runtime: SandboxRuntime) -> None:
    text = """
import os
from pydantic import create_model
class Base(BaseAnswer):
    def verify(self):
        return True

Answer = create_model("Answer", __base__=Base, **{f"f{os.getpid()}": (int, 1)})
"""

    async def run() -> None:
        handle = await runtime.load(text, PRIMITIVES)
        (name,) = (item.name for item in handle.fields())
        assert name in (await handle.build({name: 2})).values()
        end_workers(runtime)
        with pytest.raises(TemplateError):
            await handle.build({name: 2})

    asyncio.run(run())


def test_a_worker_has_no_rights_and_cannot_get_any(runtime: SandboxRuntime) -> None:
    asyncio.run(runtime.load(MIXED, PRIMITIVES))
    server = runtime.pool.server.pid
    (worker, *_) = [pid for pid in children(server) if runs(pid)]
    facts = dict(line.split(":\t", 1) for line in Path(f"/proc/{worker}/status").read_text().splitlines())
    assert (facts["NoNewPrivs"], facts["Seccomp"], facts["Threads"]) == ("1", "2", "1")
    assert {int(facts[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
    assert "0" not in facts["Uid"].split()
    limits = Path(f"/proc/{worker}/limits").read_text().splitlines()
    for name in ("Max processes", "Max file size", "Max core file size", "Max locked memory"):
        (line,) = [line.removeprefix(name) for line in limits if line.startswith(name)]
        assert line.split()[:2] == ["0", "0"]
    full = asyncio.run(runtime.load(MIXED, PRIMITIVES)).isolation == "sandbox-full"
    if full and os.geteuid() == 0:  # others may not look into a process that cannot be dumped
        assert sorted(os.listdir(f"/proc/{worker}/fd")) == ["0", "1", "2", "3"]
        assert {os.readlink(f"/proc/{worker}/fd/{number}") for number in "012"} == {"/dev/null"}
        assert Path(f"/proc/{worker}/environ").read_bytes() == b"PYTHONHASHSEED=0\0"
        for kind in ("net", "ipc", "uts", "mnt"):
            assert os.readlink(f"/proc/{worker}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}")
        assert os.listdir(f"/proc/{worker}/root") == []
        for line in Path(f"/proc/{worker}/maps").read_text().splitlines():
            rights = line.split()[1]
            assert "w" not in rights or rights == "rw-p", f"others see what is written there, or it is code: {line}"


def test_a_set_has_the_same_order_in_every_run(runtime: SandboxRuntime) -> None:
    orders = []
    for _ in range(2):
        with pytest.raises(TemplateError, match="verify\\(\\) raised ValueError: ") as raised:
            asyncio.run(judged(runtime, source("raise ValueError(list({str(n) for n in range(12)}))")))
        orders.append(str(raised.value))
        runtime.close()  # the next template has another server
    assert orders[0] == orders[1]
