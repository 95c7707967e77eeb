"""Edits what is sent, and asks again: each plugin takes part where the person's newest message names it."""

from routecodex.routing.plugins import AfterRequest, Appending, Plugin, Request, TurnInfo, UserText


def newest(turn: TurnInfo) -> str:
    return next((message.text for message in reversed(turn.call.messages) if message.role == "user"), "")


class Named(Plugin):
    def wants(self, turn: TurnInfo) -> bool:
        return turn.kind == "main" and any(self.name in message.text for message in turn.call.messages)


class Colder(Named):
    """Another temperature in every round, and a sentence behind the history of the first."""

    async def on_before_request(self, turn: TurnInfo, request: Request) -> None:
        where = request.body.get("generationConfig", request.body)
        assert isinstance(where, dict)
        where["temperature"] = 0.125
        if request.round == 0:
            request.append(UserText("(in a few words)"))


class Insists(Named):
    async def on_after_request(self, turn: TurnInfo, after: AfterRequest) -> None:
        if turn.rounds == 1:
            after.append_and_request(UserText("Are you sure?"), suffix=":insists")


class Remembers(Named):
    """For the next call, whoever makes it."""

    async def on_after_request(self, turn: TurnInfo, after: AfterRequest) -> None:
        after.append_message(UserText("By the way, it rains."))


class Softens(Named):
    """Says it in other words than the plugin that asked."""

    def on_message_append(self, turn: TurnInfo, appending: Appending) -> None:
        if isinstance(appending.message, UserText):
            appending.message = UserText(f"Please: {appending.message.text}")


plugins = [Colder(), Insists(), Remembers(), Softens()]
