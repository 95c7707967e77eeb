"""Why a provider did not answer, read from its status, headers and body, whatever dialect or house style it used.

1. Nothing here raises, and no more than `_BODY_LIMIT` bytes are looked at.
2. A spent quota is told from a per-minute limit: the first switches keys, the second waits for the same key.
3. Whether there is an error at all is decided by `says_error` alone: some hosts put an empty one beside every good answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..values import JsonObject, ProviderError
from .fields import list_of, object_of, read_json, text_of
from .waits import wait_of

_BODY_LIMIT = 256 * 1024
_MESSAGE_LIMIT = 2000

ANTHROPIC: Mapping[str, int] = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500,
    "timeout_error": 504, "overloaded_error": 529,
}  # fmt: skip
GOOGLE: Mapping[str, int] = {
    "failed_precondition": 400, "invalid_argument": 400, "unauthenticated": 401, "permission_denied": 403,
    "not_found": 404, "aborted": 409, "resource_exhausted": 429, "internal": 500, "unimplemented": 501,
    "unavailable": 503, "deadline_exceeded": 504,
}  # fmt: skip
_STATUS: Mapping[str, int] = {
    **ANTHROPIC,
    **GOOGLE,
    # OpenAI
    "invalid_prompt": 400, "context_length_exceeded": 400, "invalid_api_key": 401, "model_not_found": 404,
    "rate_limit_exceeded": 429, "insufficient_quota": 429, "usage_limit_reached": 429, "server_error": 500,
    "server_is_overloaded": 503, "slow_down": 503, "engine_overloaded_error": 429,
    # Zhipu
    "1000": 401, "1001": 401, "1002": 401, "1003": 401, "1004": 401, "1110": 403, "1112": 403, "1113": 429,
    "1211": 404, "1220": 403, "1234": 500, "1261": 400, "1301": 400, "1302": 429, "1303": 429, "1304": 429,
    "1305": 429, "1308": 429, "1309": 429, "1310": 429,
    # DashScope, Ark, MiniMax
    "invalidapikey": 401, "arrearage": 402, "accountoverdueerror": 402, "throttling": 429,
    "throttling.ratequota": 429, "throttling.allocationquota": 429, "internalerror": 500,
    "1008": 402, "2013": 400, "2049": 401, "2056": 429, "1039": 429, "1042": 400,
}  # fmt: skip
"""What an error inside a 200 would have been, by its code or type (lower case)."""

_QUOTA_CODES = frozenset(
    (
        "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error", "insufficient_balance",
        "usage_limit_reached", "exceeded_current_quota_error", "quota_exhausted", "quotaexceeded", "arrearage",
        "accountoverdueerror", "throttling.allocationquota", "allocationquota.freetieronly", "prepaidbilloverdue",
        "postpaidbilloverdue", "1113", "1304", "1308", "1309", "1310", "1008", "2056", "30001",
    )
)  # fmt: skip
_QUOTA_TEXT = re.compile(
    r"credit balance is too low|insufficient (?:account )?(?:balance|credit|funds)|balance is insufficient|out of credits"
    r"|add (?:more )?credits|payment required|spending limit|usage limit|billing hard limit|arrears|overdue"
    r"|\bper day\b|\bRPD\b|\bTPD\b|daily (?:request |token )?(?:limit|quota)"
    r"|余额不足|余额已用|欠费|额度不足|额度已用|额度用完|无可用资源包|使用上限",
    re.IGNORECASE,
)
_OPENAI_QUOTA_TEXT = re.compile(r"exceeded your current quota", re.IGNORECASE)
"""Google writes the same sentence for a per-minute limit: there the details decide."""
_QUOTA_400 = re.compile(r"credit balance is too low|余额不足|欠费", re.IGNORECASE)

_FINE = frozenset(("", "0", "200", "ok", "success", "succeeded", "successful", "none", "null", "no error", "成功"))
"""What vendors write into an error's fields when nothing is wrong."""
_ABOUT_THE_CALL = frozenset(("id", "request_id", "requestId", "trace_id", "log_id", "logid", "timestamp", "param"))
"""Fields that an error has, and that do not say that there is one."""
_DEEPEST = 8
_NO_CODE = re.compile(r"\d{3}|error|response\.failed|")
_MARKUP = re.compile(r"<(script|style)\b.{0,20000}?</\1>|<[^<>]{0,2000}>", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<title[^<>]{0,200}>([^<]{1,300})", re.IGNORECASE)


def read_failure(status: int, headers: Mapping[str, str], body: bytes, *, now: float) -> ProviderError:
    """The error of an answer whose status says that it is one. `now` is the epoch in seconds."""
    document = _document(body[:_BODY_LIMIT])
    if document is None:
        message, code, told = _plain_text(body[:_BODY_LIMIT]), "", None
    else:
        message, code, told = _told(document)
    return _provider_error(status, headers, message, code, told, now)


def failure_inside(document: JsonObject, *, now: float | None = None) -> ProviderError | None:
    """The error that stands where an answer should (an HTTP 200, a stream's event); None where there is no error."""
    told = _error_part(document)
    if told is None:
        return None
    message, code, error = _told(document)
    return _provider_error(_status_inside(error, document, code), {}, message, code, error, now)


def says_error(value: object, _depth: int = 0) -> bool:
    """Whether what stands under `error`, or under one of its fields, says that something failed."""
    if isinstance(value, dict):
        parts: list[object] = [part for name, part in value.items() if name not in _ABOUT_THE_CALL]
    elif isinstance(value, list):
        parts = value
    elif isinstance(value, str):
        return value.strip().lower() not in _FINE
    else:
        return value is True or value not in (None, False, 0, 200)
    return bool(parts) and (_depth > _DEEPEST or any(says_error(part, _depth + 1) for part in parts))


def has_error(document: JsonObject) -> bool:
    """Whether an error stands in a document that may be a good answer all the same."""
    return "error" in document and says_error(document["error"])


def without_empty_error(document: JsonObject) -> JsonObject:
    """A good answer, or an event of one, as official SDKs take it: they raise at any truthy `error`, be there nothing in it. What
    needs no change stays the very document."""
    if document.get("type") == "error":
        return document
    settled = _without_empty(document)
    inner = document.get("response")
    if isinstance(inner, dict) and (new := _without_empty(inner)) is not inner:
        settled = {**settled, "response": new}
    return settled


def _without_empty(holder: JsonObject) -> JsonObject:
    error = holder.get("error")
    if not (error or isinstance(error, dict | list)) or says_error(error):
        return holder
    if holder.get("object") == "response" or "output" in holder:  # there the field is never missing
        return {**holder, "error": None}
    return {name: value for name, value in holder.items() if name != "error"}


def failure_of_page(body: bytes) -> ProviderError | None:
    """A web page where an answer should be: a wrong address, a login wall, a gateway's own error."""
    if not body[:64].lstrip().lower().startswith((b"<!doctype", b"<html", b"<head", b"<?xml")):
        return None
    return ProviderError(502, f"The provider answered with a web page: {_plain_text(body[:_BODY_LIMIT])}", "NOT_JSON")


def _provider_error(
    status: int, headers: Mapping[str, str], message: str, code: str, error: JsonObject | None, now: float | None
) -> ProviderError:
    detail = error if error is not None else {}
    words = {word.lower() for word in (code, text_of(detail.get("type")), text_of(detail.get("code")), *_reasons(detail))}
    return ProviderError(
        status=status,
        message=_clean(message),
        code=_clean(code)[:200] or f"HTTP_{status}",
        retry_after_s=wait_of(status, headers, detail, message[:_MESSAGE_LIMIT], now),
        quota=_is_quota(status, headers, words, message, detail),
    )


# --- the body -------------------------------------------------------------------------------------------------------


def _document(body: bytes) -> JsonObject | None:
    """The JSON of an error body: plain, the first of an array, or in the first `data` line of an event stream."""
    value = read_json(body)
    if value is None and b"data:" in body:
        for line in body.splitlines()[:50]:
            if line.startswith(b"data:") and isinstance(value := read_json(line[5:].strip()), dict):
                break
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, str):
        return {"message": value}
    return value if isinstance(value, dict) else None


def _error_part(document: JsonObject) -> JsonObject | None:
    """The object that holds the error's fields; None where the document is no error."""
    error = document.get("error")
    if has_error(document):
        if isinstance(error, dict):
            return error
        if isinstance(error, str):
            return {**document, "message": error}
    response = object_of(document.get("response"))
    if isinstance(inner := response.get("error"), dict) and says_error(inner):
        return inner
    base = object_of(document.get("base_resp"))
    if says_error(base.get("status_code")):
        return {"code": base.get("status_code"), "message": base.get("status_msg")}
    if document.get("type") == "error" or says_error(document.get("error_code")) or says_error(document.get("error_msg")):
        return document
    if document.get("success") is False or document.get("status") == "error":
        return document
    coded = says_error(document.get("code")) and ("message" in document or "msg" in document)
    return document if coded else None


def _told(document: JsonObject) -> tuple[str, str, JsonObject]:
    """Message, code and the object they were found in."""
    error = _error_part(document)
    if error is None:
        first = next((object_of(item) for item in list_of(document.get("errors")) if item), None)
        error = first if first else document
    return _message(error), _code(error) or _code(document), error


def _message(error: JsonObject) -> str:
    for name in ("message", "msg", "error_msg", "error_message", "errorMessage", "detail", "error_description", "title"):
        value = error.get(name)
        if isinstance(value, str) and value:
            raw = object_of(error.get("metadata")).get("raw")
            return f"{value}: {raw}" if isinstance(raw, str) and raw and raw != value else value
        if isinstance(value, dict) and (inner := _message(value)):
            return inner
        if isinstance(value, list) and (inner := _message(object_of(value[0] if value else None))):
            return inner
    return ""


def _code(error: JsonObject) -> str:
    """The word or vendor number; HTTP's own number says nothing that the status does not."""
    for name in ("code", "error_code", "status", "type"):
        value = error.get(name)
        if isinstance(value, str) and not _NO_CODE.fullmatch(value):
            return value
        if isinstance(value, int) and not isinstance(value, bool) and not 100 <= value <= 599 and 0 < abs(value) < 10**9:
            return str(value)
    detail = error.get("detail")
    return _code(detail) if isinstance(detail, dict) and detail is not error else ""


def _reasons(error: JsonObject) -> list[str]:
    """Google's reasons: `QUOTA_EXHAUSTED`, `RATE_LIMIT_EXCEEDED`, …"""
    return [text_of(object_of(detail).get("reason")) for detail in list_of(error.get("details"))[:20]]


def _status_inside(error: JsonObject, document: JsonObject, code: str) -> int:
    numbers = [error.get(name) for name in ("code", "status_code", "status")]
    for value in (*numbers, document.get("code"), document.get("error_code")):
        number = int(value) if isinstance(value, str) and re.fullmatch(r"[45]\d\d", value) else value
        if isinstance(number, int) and not isinstance(number, bool) and 400 <= number <= 599:
            return number
    for word in (code, text_of(error.get("type")), text_of(error.get("status"))):
        if (known := _STATUS.get(word.lower())) is not None:
            return known
    return 502


def _plain_text(body: bytes) -> str:
    text = body[: _MESSAGE_LIMIT * 4].decode("utf-8", "replace")
    if "<" in text and (title := _TITLE.search(text)):
        return title[1].strip()
    return " ".join(_MARKUP.sub(" ", text).split()) if text.lstrip().startswith("<") else text


def _clean(text: str) -> str:
    """A bounded sentence that every encoder takes."""
    text = "".join(mark if mark.isprintable() or mark in "\n\t" else " " for mark in text[:_MESSAGE_LIMIT]).strip()
    return text.encode("utf-8", "replace").decode()


# --- quota or rate ----------------------------------------------------------------------------------------------------


def _is_quota(status: int, headers: Mapping[str, str], words: set[str], message: str, error: JsonObject) -> bool:
    if status == 402 or words & _QUOTA_CODES:
        return True
    text = message[:_MESSAGE_LIMIT]
    if status == 400:
        return bool(_QUOTA_400.search(text))
    if status not in (403, 429):
        return False
    violations = [
        text_of(object_of(violation).get("quotaId")) + text_of(object_of(violation).get("quotaMetric"))
        for detail in list_of(error.get("details"))[:20]
        for violation in list_of(object_of(detail).get("violations"))[:20]
    ]
    if any(violations):
        return any("perday" in name.lower().replace("_", "") for name in violations)
    if headers.get("anthropic-ratelimit-unified-status", "").startswith("rejected"):
        return True
    google = "resource_exhausted" in words
    return bool(_QUOTA_TEXT.search(text)) or (not google and bool(_OPENAI_QUOTA_TEXT.search(text)))
