"""How many connections, and how many TLS handshakes, calls over HTTPS take: each of them costs more than a call.

    python -m tests.benchmarks.connections ADAPTER URL ITEMS PLACES

has the items verified through an adapter; the server, which counts, is in the process of the benchmark.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path

from aiohttp import web
from attrs import define, field

from .loopback import REPLIES
from .measure import Row
from .processes import measured
from .workload import moons

__all__ = ["connection_rows"]

PLACES = 50
"""Items in flight."""
LATENCY = 0.02
"""Seconds per reply."""
ADAPTERS = {"openai_endpoint": 1.0, "litellm": None}
"""By adapter, the connections for each place that are enough: litellm has a client of its own."""


@define(eq=False)
class Seen:
    """What a server has counted."""

    calls: int = 0
    peers: set[object] = field(factory=set)
    """The other ends of connections."""
    handshakes: int = 0

    async def completions(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        self.calls += 1
        self.peers.add(request.transport.get_extra_info("peername"))
        judges = b'"json_schema"' in await request.read()
        await asyncio.sleep(LATENCY)
        return web.Response(body=REPLIES[judges], content_type="application/json")

    def shake(self, *_: object) -> None:
        """A client has said hello, as every handshake begins."""
        self.handshakes += 1


def connection_rows(items: int) -> list[Row]:
    """Connections that so many items open, of which `PLACES` are in flight."""
    rows = []
    for adapter, each in ADAPTERS.items():
        seen = asyncio.run(_seen(adapter, items))
        if seen.calls != 2 * items:
            raise RuntimeError(f"{seen.calls} calls in place of {2 * items}")
        most = None if each is None else each * min(PLACES, items)
        about = f"{seen.calls} calls, {min(PLACES, items)} in flight, {seen.handshakes} TLS handshakes"
        rows.append(Row(f"connections over HTTPS, {adapter}", float(len(seen.peers)), most, None, about, unit=""))
    return rows


async def _seen(adapter: str, items: int) -> Seen:
    seen = Seen()
    with tempfile.TemporaryDirectory() as folder:
        certificate = _certificate(Path(folder) / "localhost.pem")
        async with _served(seen, certificate) as url:
            environment = {"SSL_CERT_FILE": str(certificate), "OPENAI_API_KEY": "none"}
            call = partial(measured, "connections", adapter, url, items, PLACES, environment=environment)
            (verified,) = await asyncio.to_thread(call)
            assert verified == items
    return seen


@asynccontextmanager
async def _served(seen: Seen, certificate: Path) -> AsyncIterator[str]:
    """The address of a server of chat completions over HTTPS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = seen.shake
    app = web.Application()
    app.router.add_post("/v1/chat/completions", seen.completions)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024, ssl_context=context).start()
        yield f"https://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def _certificate(file: Path) -> Path:
    """A certificate of this machine that signs itself, with its key; it holds for two days."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    authority = x509.BasicConstraints(ca=True, path_length=None)
    made = builder.add_extension(address, False).add_extension(authority, True).sign(key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return file


async def _verified(adapter: str, url: str, items: int, places: int) -> None:
    from karenina_core import Karenina, ModelConfig, VerificationConfig

    provider = "openai" if adapter == "litellm" else None
    model = ModelConfig(model_name="any", interface=adapter, endpoint_base_url=url, model_provider=provider)
    config = VerificationConfig(answering_models=[model], parsing_models=[model], concurrency=places)
    results = await moons(items).arun_verification(config, app=Karenina.installed())
    assert results.get_summary()["outcomes"] == {"passed": items}, results.get_summary()


def main() -> None:
    adapter, url, items, places = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    asyncio.run(_verified(adapter, url, items, places))
    print(json.dumps([items]))


if __name__ == "__main__":
    main()
