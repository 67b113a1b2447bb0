"""Sorts a list that belongs to another stage."""

from karenina_core import ArtifactKeys, Key, Stage, VerificationContext

FIRST = Key("planted.first", str | None)


class Planted(Stage):
    requires = (ArtifactKeys.ANSWERING_MCP_SERVERS,)
    produces = (FIRST,)

    def execute(self, context: VerificationContext) -> None:
        servers = context.get_artifact(ArtifactKeys.ANSWERING_MCP_SERVERS)
        servers.sort()  # the fault
        context.set_artifact(FIRST, servers[0] if servers else None)
