"""Asks once more when an answer lacks a word. In mitm-config.yaml: plugins: [shout.py]"""

from routecodex.routing.plugins import AfterRequest, Plugin, TurnInfo, UserText

WORD = "DONE"


class Shout(Plugin):
    def wants(self, turn: TurnInfo) -> bool:
        return turn.kind == "main"

    async def on_after_request(self, turn: TurnInfo, after: AfterRequest) -> None:
        if turn.rounds == 1 and not after.said.calls and WORD not in after.said.text:
            after.append_and_request(UserText(f"Go on, and say {WORD} when you are done."))


plugins = [Shout()]
