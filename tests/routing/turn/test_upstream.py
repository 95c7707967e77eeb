"""A call's request as it goes to one target: address, path, headers, body, and who may have the caller's credential."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.seals import Seals
from routecodex.routing.dialects.translation.neutral import Seal
from routecodex.routing.dialects.translation.opaque import wrap
from routecodex.routing.errors import BadCall, ConfigError
from routecodex.routing.headers import MASK
from routecodex.routing.router.registry import ORIGIN, Key, Model, Provider, Url
from routecodex.routing.turn.upstream import HistorySealed, NoCommonDialect, Received, Request, dialect_for, goes_home, write
from routecodex.routing.values import Dialect, Target
from tests.routing.house import HOSTS, House

CHAT = Dialect.CHAT
HOME = Provider(ORIGIN, None, {}, (Key("client", 1),), {}, auth="client")


def provider(*dialects: Dialect, host: str = "glm.example", port: int = 443, path: str = "/v1", **changes: object) -> Provider:
    return Provider(
        id="glm",
        dialect=dialects[0] if dialects else CHAT,
        endpoints={dialect: Url("https", host, port, path) for dialect in dialects},
        keys=(Key("key1", 1, "sk-glm-key1-secret"), Key("none", 2, "")),
        models={"m": Model("m")},
        **changes,  # type: ignore[arg-type]
    )


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


BODIES: dict[Dialect, tuple[str, dict[str, object]]] = {
    Dialect.MESSAGES: ("/v1/messages", {"model": "c", "messages": [{"role": "user", "content": "hi"}]}),
    Dialect.CHAT: ("/v1/chat/completions", {"model": "c", "messages": [{"role": "user", "content": "hi"}]}),
    Dialect.RESPONSES: ("/v1/responses", {"model": "c", "input": "hi"}),
    Dialect.GEMINI: ("/v1beta/models/c:generateContent", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
}
DIALECTS = pytest.mark.parametrize("dialect", list(Dialect))


def received(house: House, dialect: Dialect, path: str = "", host: str = "", **headers: str) -> Received:
    usual, body = BODIES[dialect]
    fields = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return house.received(path or usual, body, host=host or HOSTS[dialect], headers=fields)


def asked(found: Received, at: Provider, key: str = "key1", model: str = "m") -> Request:
    return write(found, read_call(found.body, found.endpoint), at, Target(at.id, key, model))


@pytest.mark.parametrize(
    "body, takes_long",
    [
        (b"{" + b"x" * 1_499_000, False),
        (b"{" + b"x" * 1_500_000, True),
        (b"{}," * 12_000, True),
        (b"1," * 12_000, True),
        (b"f(a_long_name, another), one_more_of_some_length = some_value[0]\n" * 20_000, False),
        (b"1," * 4_000, False),
    ],
    ids=["long, yet not too long", "too long", "many objects", "many values", "code", "few"],
)
def test_what_takes_long(house: House, body: bytes, takes_long: bool) -> None:
    assert replace(received(house, Dialect.CHAT), body=body).takes_long is takes_long


# --- addresses and paths ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dialect, base, path",
    [
        (Dialect.MESSAGES, "", "/v1/messages"),
        (Dialect.MESSAGES, "/api/anthropic", "/api/anthropic/v1/messages"),
        (Dialect.CHAT, "/api/paas/v4", "/api/paas/v4/chat/completions"),
        (Dialect.RESPONSES, "/v1", "/v1/responses"),
        (Dialect.GEMINI, "", "/v1beta/models/m:generateContent"),
    ],
)
def test_the_providers_own_path(house: House, dialect: Dialect, base: str, path: str) -> None:
    request = asked(received(house, dialect), provider(dialect, port=8443, path=base))
    assert (request.scheme, request.host, request.port, request.path) == ("https", "glm.example", 8443, path)
    if dialect is not Dialect.GEMINI:
        assert json.loads(request.body)["model"] == "m"


def test_of_the_query_only_beta_goes_on(house: House) -> None:
    found = received(house, Dialect.MESSAGES, "/v1/messages?beta=true&key=***&x=1")
    assert asked(found, provider(Dialect.MESSAGES)).path == "/v1/messages?beta=true"


@DIALECTS
def test_at_home_path_and_query_stay_as_they_are(house: House, dialect: Dialect) -> None:
    path = f"{BODIES[dialect][0]}?x=%20a&key=***"
    found = received(house, dialect, path)
    request = asked(found, HOME, "client", "c")
    assert (request.scheme, request.host, request.port, request.path) == ("https", HOSTS[dialect], 443, path)
    assert request.body is found.wire_body


def test_another_model_at_home_keeps_the_credential_in_the_query(house: House) -> None:
    """Google's clients may put their key there: it joins again on the wire where the mask stands."""
    found = received(house, Dialect.GEMINI, "/v1beta/models/c:streamGenerateContent?alt=sse&key=***&x=1")
    request = asked(found, HOME, "client", "gemini/2.5 pro")
    assert request.path == "/v1beta/models/gemini%2F2.5%20pro:streamGenerateContent?alt=sse&key=***&x=1"
    assert request.client_credential


def test_another_model_at_home_in_the_body(house: House) -> None:
    request = asked(received(house, Dialect.CHAT, content_encoding="zstd"), HOME, "client", "other")
    assert json.loads(request.body)["model"] == "other"
    assert request.path == "/v1/chat/completions"
    assert "content-encoding" not in dict(request.headers.shown)


def test_codes_are_kept_with_the_bytes_they_belong_to(house: House) -> None:
    found = received(house, Dialect.CHAT, content_encoding="zstd")
    assert dict(asked(found, HOME, "client", "").headers.shown)["content-encoding"] == "zstd"
    assert "content-encoding" not in dict(asked(found, provider(CHAT)).headers.shown)


# --- who speaks what ---------------------------------------------------------------------------------------------------------


def spoken_to(at: Provider, found: Received) -> Dialect | None:
    return dialect_for(at, found, read_call(found.body, found.endpoint))


@DIALECTS
def test_the_clients_own_dialect_is_preferred_else_the_first_that_is_spoken(house: House, dialect: Dialect) -> None:
    found = received(house, dialect)
    others = tuple(other for other in Dialect if other is not dialect)
    assert spoken_to(HOME, found) is dialect
    assert spoken_to(provider(*others, dialect), found) is dialect
    assert spoken_to(provider(*others), found) is others[0]
    assert spoken_to(provider(), found) is None


ENVELOPE = "/v1internal:generateContent"


@pytest.mark.parametrize(
    "path, base, sent_to",
    [
        (ENVELOPE, "/v1internal", "/v1internal:generateContent"),
        (ENVELOPE, "/v1internal/", "/v1internal:generateContent"),
        (ENVELOPE, "", "/v1beta/models/m:generateContent"),
        ("", "/v1internal", None),
        ("", "", "/v1beta/models/m:generateContent"),
    ],
)
def test_code_assist_is_a_form_of_its_own(house: House, path: str, base: str, sent_to: str | None) -> None:
    """It is left at the door of any other host; nobody is put into it."""
    body = {"model": "c", "request": BODIES[Dialect.GEMINI][1]}
    found = house.received(path, body, host="cloudcode-pa.googleapis.com") if path else received(house, Dialect.GEMINI)
    at = provider(Dialect.GEMINI, path=base)
    if sent_to is None:
        assert spoken_to(at, found) is None
        with pytest.raises(NoCommonDialect, match="Provider glm speaks gemini-chat, but this tool speaks gemini-chat"):
            asked(found, at)
        return
    request = asked(found, at)
    assert request.path == sent_to
    assert b'"hi"' in request.body


@DIALECTS
@pytest.mark.parametrize("other", list(Dialect))
def test_another_dialect(house: House, dialect: Dialect, other: Dialect) -> None:
    if dialect is other:
        return
    found = received(house, dialect, authorization=MASK, x_api_key=MASK)
    request = asked(found, provider(other, path=""))
    assert request.translated is not None
    assert request.translated.dialect is other
    bare = request.path.partition("?")[0]
    assert bare == BODIES[other][0].replace("models/c:", "models/m:")
    assert b"hi" in request.body
    assert MASK not in repr(request.headers)
    assert [value.removeprefix("Bearer ") for _, value in request.headers.secret] == ["sk-glm-key1-secret"]
    assert ("anthropic-version" in dict(request.headers.shown)) is (other is Dialect.MESSAGES)
    if other is not Dialect.GEMINI:
        assert json.loads(request.body)["model"] == "m"


def test_what_only_its_own_dialect_can_answer_is_refused_elsewhere(house: House) -> None:
    body = {"model": "c", "input": "hi", "previous_response_id": "resp_1"}
    found = house.received("/v1/responses", body, host=HOSTS[Dialect.RESPONSES])
    assert spoken_to(provider(CHAT), found) is None
    assert spoken_to(provider(CHAT, Dialect.RESPONSES), found) is Dialect.RESPONSES
    with pytest.raises(BadCall):
        asked(found, provider(CHAT))


def test_counts_are_not_translated(house: House) -> None:
    found = received(house, Dialect.MESSAGES, "/v1/messages/count_tokens")
    assert spoken_to(provider(CHAT), found) is None
    with pytest.raises(NoCommonDialect):
        asked(found, provider(CHAT))


@DIALECTS
def test_the_callers_credential_is_never_for_another_dialect(house: House, dialect: Dialect) -> None:
    other = next(other for other in Dialect if other is not dialect)
    with pytest.raises(ConfigError, match="forwards the caller's own credential"):
        asked(received(house, dialect), provider(other, host=HOSTS[dialect], auth="client"))


def test_a_provider_that_speaks_nothing(house: House) -> None:
    with pytest.raises(NoCommonDialect, match="speaks nothing that is configured"):
        asked(received(house, CHAT), provider())


WRAPPED = wrap(Seal(CHAT, "elsewhere", {"reasoning_content": True}))
OURS = wrap(Seal(CHAT, "glm", {"reasoning_content": True}))


def thinking(house: House, seal: str) -> Received:
    sealed = {"type": "thinking", "thinking": "hidden words", "signature": seal}
    said = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [sealed, {"type": "text", "text": "hello"}]},
        {"role": "assistant", "content": [sealed]},
        {"role": "user", "content": "and?"},
    ]
    return house.received("/v1/messages", {"model": "c", "messages": said}, host=HOSTS[Dialect.MESSAGES])


@pytest.mark.parametrize("at", [HOME, provider(Dialect.MESSAGES)], ids=["home", "another"])
@pytest.mark.parametrize("seal", [WRAPPED, OURS], ids=["elsewhere", "its own, in another dialect"])
def test_a_wrapped_seal_never_goes_out_as_a_signature(house: House, at: Provider, seal: str) -> None:
    found = thinking(house, seal)
    own = Seals().made_by("glm")
    request = write(found, read_call(found.body, found.endpoint), at, Target(at.id, "key1", "c"), own=own)
    assert seal.encode() not in request.body
    assert b"hidden words" not in request.body
    assert [message["role"] for message in json.loads(request.body)["messages"]] == ["user", "assistant", "user"]


@pytest.mark.parametrize("seal, kept", [(OURS, True), (WRAPPED, False), ("a-real-signature", False)])
def test_its_maker_gets_its_thinking_back(house: House, seal: str, kept: bool) -> None:
    found = thinking(house, seal)
    own = Seals().made_by("glm")
    request = write(found, read_call(found.body, found.endpoint), provider(CHAT), Target("glm", "key1", "m"), own=own)
    assert (b'"reasoning_content":"hidden words' in request.body) is kept
    assert (b"hidden words" in request.body) is kept
    assert seal.encode() not in request.body


# --- whose credential -----------------------------------------------------------------------------------------------------------


@DIALECTS
def test_our_key_stands_only_on_the_wire(house: House, dialect: Dialect) -> None:
    found = received(house, dialect, authorization=MASK, x_api_key=MASK, cookie=MASK)
    request = asked(found, provider(dialect, headers={"x-extra": "sk-extra-secret"}))
    assert not request.client_credential
    assert "secret" not in repr(request.headers.shown) + request.path
    assert MASK not in repr(request.headers)
    assert [value.removeprefix("Bearer ") for _, value in request.headers.secret] == ["sk-glm-key1-secret", "sk-extra-secret"]


@pytest.mark.parametrize("key", ["none", "", "gone"])
def test_a_provider_without_a_credential_gets_none(house: House, key: str) -> None:
    assert asked(received(house, CHAT), provider(CHAT), key).headers.secret == ()


@pytest.mark.parametrize(
    "host, port, home",
    [("api.openai.com", 443, True), ("API.OpenAI.com", 443, True), ("api.openai.com", 8443, False), ("openai.com", 443, False)],
)
def test_home_is_where_the_client_was_going(house: House, host: str, port: int, home: bool) -> None:
    """Another port is another server: on this machine nearly always."""
    found = received(house, CHAT, host=host)
    at = provider(CHAT, host="api.openai.com", port=port)
    assert goes_home(at, found) is home
    assert goes_home(HOME, found)


def test_home_is_not_reached_in_the_clear(house: House) -> None:
    found = received(house, CHAT)
    at = provider(CHAT)
    plain = Provider("p", CHAT, {CHAT: Url("http", HOSTS[CHAT], 443)}, (), {}, auth="client")
    assert not goes_home(plain, found)
    assert not goes_home(at, found)


@DIALECTS
def test_auth_client_forwards_the_callers_own_to_its_own_host_alone(house: House, dialect: Dialect) -> None:
    found = received(house, dialect, authorization=MASK, x_own="1", x_routecodex_session="s")
    own = provider(dialect, host=HOSTS[dialect], auth="client")
    request = asked(found, own)
    assert request.client_credential
    assert request.headers.secret == ()
    shown = dict(request.headers.shown)
    assert shown["authorization"] == MASK
    assert shown["x-own"] == "1"
    assert "x-routecodex-session" not in shown
    with pytest.raises(ConfigError) as refused:
        asked(found, provider(dialect, host="elsewhere.example", auth="client"))
    assert "serves only calls to elsewhere.example" in refused.value.message
    assert "virtualrouter.providers.glm.auth" in refused.value.message


def test_what_identifies_the_caller_stays_behind_abroad(house: House) -> None:
    body = {
        "model": "c",
        "metadata": {"user_id": "user_1_session_2"},
        "messages": [{"role": "user", "content": "hi"}],
    }
    found = house.received("/v1/messages", body, host="api.anthropic.com")
    abroad = asked(found, provider(Dialect.MESSAGES))
    assert b"user_1_session_2" not in abroad.body
    at_home = asked(found, provider(Dialect.MESSAGES, host="api.anthropic.com"))
    assert b"user_1_session_2" in at_home.body


def test_ids_that_the_target_made_itself_go_back_to_it(house: House) -> None:
    body = {"model": "c", "input": "hi", "previous_response_id": "resp_1"}
    found = house.received("/v1/responses", body, host="api.openai.com")
    call = read_call(found.body, found.endpoint)
    at = provider(Dialect.RESPONSES)
    target = Target("glm", "key1", "m")
    with pytest.raises(BadCall, match="the history before this call is kept at the provider that made it"):
        write(found, call, at, target)
    assert b"resp_1" in write(found, call, at, target, own=("resp_1",)).body


@pytest.mark.parametrize(
    "more, leans",
    [
        ({"conversation": "conv_1"}, True),
        ({"conversation": {"id": "conv_1"}}, True),
        ({"conversation": None}, False),
        ({"input": [{"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": "hi"}]}, True),
        ({"input": [{"id": "fc_1"}, {"role": "user", "content": "hi"}]}, True),
        ({"input": [{"type": "item_reference", "id": "rs_1"}, {"role": "user", "content": "hi"}]}, False),
        ({"input": [{"type": "message", "id": "msg_1", "role": "user", "content": "hi"}]}, False),
        ({"previous_response_id": "resp_1"}, True),
    ],
)
@pytest.mark.parametrize("spoken", Dialect)
def test_a_history_that_others_keep_is_never_left_out_in_silence(
    house: House, spoken: Dialect, more: dict[str, object], leans: bool
) -> None:
    """Whoever is asked without it would answer something else. Also in the dialect of the client."""
    found = house.received("/v1/responses", {"model": "c", "input": "hi"} | more, host="api.openai.com")
    call, at = read_call(found.body, found.endpoint), provider(spoken)
    elsewhere = Target("another", "k", "m")
    assert (dialect_for(at, found, call, elsewhere) is None) is leans
    if leans:
        with pytest.raises(BadCall, match="kept at"):
            asked(found, at)
    else:
        assert b"hi" in asked(found, at).body
    home = provider(Dialect.RESPONSES, host="api.openai.com")
    assert dialect_for(home, found, call, elsewhere) is Dialect.RESPONSES
    assert json.loads(asked(found, home).body) == {"input": "hi"} | more | {"model": "m"}


# --- what stays behind, and what is changed for the target ---------------------------------------------------------------


@pytest.mark.parametrize("spoken", [Dialect.CHAT, Dialect.RESPONSES])
def test_a_session_is_named_by_a_digest_of_its_own_for_each_provider(house: House, spoken: Dialect) -> None:
    found = received(house, Dialect.MESSAGES)
    call = read_call(found.body, found.endpoint)
    names = set()
    for id, session in (("glm", "session-id-1"), ("glm", "session-id-1"), ("glm", "session-id-2"), ("other", "session-id-1")):
        at = replace(provider(spoken, host="api.openai.com"), id=id)
        request = write(found, call, at, Target(id, "key1", "m"), session=session)
        assert b"session-id" not in request.body
        names.add(json.loads(request.body)["prompt_cache_key"])
    assert len(names) == 3, "the same one for the same one"


@DIALECTS
def test_what_stays_behind_is_named(house: House, dialect: Dialect) -> None:
    path, body = BODIES[dialect]
    found = house.received(path, {**body, "secret_of_mine": {"api_key": "x"}, "extra_headers": {"a": "b"}}, host=HOSTS[dialect])
    for at in (provider(dialect), provider(Dialect.CHAT), provider(Dialect.MESSAGES)):
        assert "credentials (" in asked(found, at).left_out
        assert b"extra_headers" not in asked(found, at).body
    assert asked(found, HOME, "client", "").left_out == ""
    assert asked(found, HOME, "client", "").body is found.wire_body


@pytest.mark.parametrize("spoken", list(Dialect))
def test_no_more_tokens_than_the_model_writes(house: House, spoken: Dialect) -> None:
    body = {**BODIES[Dialect.MESSAGES][1], "max_tokens": 128_000}
    found = house.received("/v1/messages", body, host=HOSTS[Dialect.MESSAGES])
    at = replace(provider(spoken), models={"m": Model("m", max_tokens=4096), "n": Model("n")})
    low = asked(found, at)
    assert b"4096" in low.body
    assert b"128000" not in low.body
    assert "a limit of 128000 tokens: 4096 is the model's" in low.left_out
    assert "4096" not in asked(found, at, model="n").left_out


def test_a_history_that_somebody_else_has_sealed(house: House) -> None:
    sealed = {"type": "compaction", "encrypted_content": "gAAAsealed"}
    body = {"model": "c", "input": [sealed, {"type": "message", "role": "user", "content": "hi"}]}
    found = house.received("/v1/responses", body, host=HOSTS[Dialect.RESPONSES])
    call, seals = read_call(found.body, found.endpoint), Seals()

    def tried(at: Provider, key: str = "key1") -> str:
        try:
            request = write(found, call, at, Target(at.id, key, ""), own=seals.made_by(at.id), maker_of=seals.maker_of)
        except HistorySealed as error:
            return str(error.details["provider"])
        assert b"gAAAsealed" in request.body
        return ""

    far = provider(Dialect.RESPONSES)
    assert [tried(far), tried(provider(Dialect.CHAT)), tried(HOME, "client")] == [ORIGIN, ORIGIN, ""]
    seals.note("glm", json.dumps(sealed).encode())
    assert [tried(far), tried(replace(far, id="other")), tried(HOME, "client")] == ["", "glm", "glm"]


@pytest.mark.parametrize(
    "host, said, itself",
    [
        ("api.openai.com", None, True),
        ("mine.openai.azure.com", None, True),
        ("openrouter.ai", None, False),
        ("openrouter.ai", True, True),
        ("api.openai.com", False, False),
    ],
)
def test_who_compacts_by_itself(house: House, host: str, said: bool | None, itself: bool) -> None:
    body = {"model": "c", "input": [{"type": "message", "role": "user", "content": "hi"}, {"type": "compaction_trigger"}]}
    found = house.received("/v1/responses", body, host="chatgpt.com")
    request = asked(found, provider(Dialect.RESPONSES, host=host, compaction=said))
    assert (b"compaction_trigger" in request.body) is itself
    assert (request.translated is None) is itself
    if request.translated is not None:
        assert request.translated.compacts
    home = asked(found, HOME, "client", "")
    assert (home.translated, b"compaction_trigger" in home.body) == (None, True), "whoever the tool asks by itself knows how"
