"""The rows of the acceptance sheet: what is asked, and the tests that show it."""

from __future__ import annotations

from dataclasses import dataclass

_TROUBLE, _SYSTEM, _ROUTING = "tests/trouble", "tests/system", "tests/routing"


@dataclass(frozen=True)
class Row:
    name: str
    asked: str
    tests: tuple[str, ...]
    timed: bool = False
    """Judged by the clock: run alone, and never part of the suite."""
    apart: bool = False
    """Takes hours: run by its name only."""
    figure: str = ""
    """What is seen where each of its cases is one thing that is asked, and all of them hold."""


def _row(name: str, asked: str, *tests: str, timed: bool = False, apart: bool = False, figure: str = "") -> Row:
    return Row(name, asked, tests, timed, apart, figure)


ROWS = (
    _row(
        "A1",
        "retries at most 20 % of calls in flight (floor 3), 10,000 calls",
        f"{_TROUBLE}/test_retries.py::test_a1_repeated_calls_stay_within_the_budget",
    ),
    _row(
        "A2",
        "the table of a key's health: rests, ladders, one probe",
        f"{_ROUTING}/router/test_health.py",
        figure="{cases:,} cases of the table, {examples:,} by chance: 0 differ",
    ),
    _row(
        "A3",
        "where every key rests one is still answered for: a single key is tried, others are waited for or refused at once",
        f"{_ROUTING}/router/test_choose.py",
        f"{_SYSTEM}/test_retries_wait.py",
        figure="{cases:,} cases, {examples:,} by chance: 0 calls without a key, a time or a refusal",
    ),
    _row(
        "A4",
        "no input costs over 100 times its size; 50 ms of CPU per MiB of hostile text; no JSON keeps others waiting for 50 ms",
        "tests/sheet/hostile.py",
        timed=True,
    ),
    _row(
        "A5",
        "an attempt is repeated only where nothing was done or nothing has left",
        f"{_ROUTING}/router/test_attempts.py",
        figure="{cases:,} attempts that ended so or so: 0 repeated that may not be, 0 not repeated that may",
    ),
    _row("A6", "12 faults × 100 calls behind a 200 that has begun: 0 executed twice", f"{_TROUBLE}/test_executed_twice.py"),
    _row("A7", "300 cancels: 0 changes of health", f"{_TROUBLE}/test_client_leaves.py"),
    _row(
        "A8",
        "Retry-After: the table, and 100,000 values that nobody thought of",
        f"{_TROUBLE}/test_retries.py::test_a8_any_value_is_a_wait_within_a_day_or_none",
        f"{_TROUBLE}/test_retries.py::test_a8_a_hundred_thousand_values_by_chance",
        f"{_ROUTING}/dialects/test_failures.py",
    ),
    _row(
        "A9",
        "0 requests to a key before its Retry-After is over",
        f"{_TROUBLE}/test_retries.py::test_a9_no_key_is_asked_before_its_time",
        f"{_SYSTEM}/test_retries_wait.py",
        figure="{examples:,} histories by chance and {cases:,} cases: 0 requests too early",
    ),
    _row(
        "A10",
        "a fault at each system call of a save, 25 of 25: old file or new one",
        f"{_TROUBLE}/test_crash.py",
        f"{_TROUBLE}/test_clock_crash.py",
    ),
    _row("A11", "10,000 spoiled session files: 0 crashes, 0 silent resets", f"{_TROUBLE}/test_spoiled_files.py"),
    _row("A12", "the clock against its model, 2,000 runs × 50 steps: 0 differences", f"{_ROUTING}/clock/test_model.py"),
    _row(
        "A13",
        "50 runs × 2,000 operations with kills, departures and clock jumps; the history is judged: 0 violations",
        f"{_ROUTING}/clock/test_model.py",
        f"{_TROUBLE}/test_clock_crash.py",
        f"{_TROUBLE}/test_clock_processes.py",
        f"{_SYSTEM}/test_clock.py",
    ),
    _row(
        "A14",
        "every module has its test, and the imports keep their order",
        "tests/test_layout.py",
        figure="{cases:,} modules and rules: 0 without their test, 0 out of order",
    ),
    _row(
        "R1",
        "10,000 random chunkings of 40 streams, and byte by byte: the same events",
        f"{_TROUBLE}/test_split_chunks.py",
        f"{_TROUBLE}/test_translated_streams.py",
    ),
    _row(
        "R2",
        "every cut of 4 KiB of CJK and emoji, four protocols: 0 broken characters",
        f"{_TROUBLE}/test_split_chunks.py",
        f"{_TROUBLE}/test_translated_streams.py",
    ),
    _row(
        "R3",
        "events of 1, 8, 15.9 and 16.1 MiB: three pass, one is an error",
        f"{_TROUBLE}/test_split_chunks.py::test_r03_a_long_event_passes_or_fails_but_is_never_cut",
        figure="{cases:,} long events in pieces of either size: 0 cut, 0 false ends",
    ),
    _row(
        "R4",
        "16 pairs × 50 cuts: 0 false ends, 0 hangs",
        f"{_TROUBLE}/test_translated_streams.py",
        f"{_SYSTEM}/test_sdk_pairs.py",
    ),
    _row(
        "R5",
        "10,000 generated conversations: names, ids and arguments equal after each of 16 pairs",
        f"{_ROUTING}/dialects/translation/test_conversations.py",
    ),
    _row(
        "R6",
        "the official SDKs read every answer: 0 exceptions",
        "tests/sdk",
        f"{_SYSTEM}/test_sdks.py",
        f"{_SYSTEM}/test_sdk_rounds.py",
        figure="{cases:,} answers read: 0 exceptions",
    ),
    _row(
        "R7",
        "a provider that falls silent at 8 places × 25: all end, nothing is left",
        f"{_TROUBLE}/test_stalls.py",
        f"{_TROUBLE}/test_silences.py",
    ),
    _row(
        "R8",
        "300 leaves: the provider is left at once, 0 follow-ups begun afterwards",
        f"{_TROUBLE}/test_client_leaves.py",
        f"{_TROUBLE}/test_turn_leaves.py",
    ),
    _row(
        "R9",
        "nothing is repeated after the first byte",
        f"{_TROUBLE}/test_executed_twice.py",
        f"{_TROUBLE}/test_translated_streams.py",
    ),
    _row(
        "R10",
        "60 s of 429 on three keys, 100 clients: at most 1.2 attempts a call, one probe a rest, back within 5 s",
        f"{_TROUBLE}/test_retries.py::test_r10_a_storm_of_429",
    ),
    _row("R11", "see S2", f"{_TROUBLE}/test_key_leak.py"),
    _row(
        "R12",
        "10,000 streams in a row: at most 10 MiB more; 200 MB pass in 5 MiB",
        f"{_TROUBLE}/test_many_streams.py",
        f"{_TROUBLE}/test_other_paths.py",
        f"{_TROUBLE}/test_growth.py",
    ),
    _row(
        "R13",
        "five encodings, request and answer, streamed and whole",
        f"{_SYSTEM}/test_encodings.py",
        figure="{cases:,} requests and answers, each packed its own way: 0 read wrongly, 0 mislabelled",
    ),
    _row(
        "R14",
        "the tagged history 100 times: exactly 3 follow-ups",
        f"{_TROUBLE}/test_stop_message_stops.py::test_r14_a_hundred_repetitions_three_follow_ups",
    ),
    _row(
        "R15",
        "1,000 streams at once, each with its token: 0 foreign ones",
        f"{_TROUBLE}/test_many_streams.py::test_many_streams_at_once",
    ),
    _row(
        "R16",
        "200 streams with bodies of 1 MB: the loop is late by 50 ms (p99), 250 ms at most; memory is back within 10 s",
        "tests/sheet/lag.py",
        timed=True,
    ),
    _row(
        "R17",
        "the same history is the same bytes, 1,000 histories",
        f"{_ROUTING}/dialects/calls/test_recorded_calls.py",
        f"{_ROUTING}/dialects/translation/test_conversations.py::test_the_same_history_has_the_same_bytes_and_a_longer_one_begins_with_them",
    ),
    _row("S1", "1,536 calls with canaries: 0 at a foreign host", f"{_TROUBLE}/test_key_leak.py"),
    _row(
        "S2",
        "12 shapes of secrets on every path of errors: 0 in logs, flows, HAR, state, answers",
        f"{_TROUBLE}/test_key_leak.py",
        f"{_TROUBLE}/test_key_echo.py",
        "tests/addons/test_sealing.py",
    ),
    _row(
        "S3",
        "120 hostile targets: 0 connections; 20 other hosts: 0 opened",
        f"{_TROUBLE}/test_egress.py",
        f"{_SYSTEM}/test_intercept.py",
    ),
    _row(
        "S4",
        "500 hostile placements × 4 protocols: 0 actions, 0 bytes changed; 1 MiB of hostile text: linear work",
        f"{_ROUTING}/tags/test_scan.py",
        f"{_ROUTING}/clients",
        f"{_TROUBLE}/test_untyped_text.py",
    ),
    _row(
        "S5",
        "a crash after each of 20 follow-ups, and anywhere: never more than were asked for",
        f"{_TROUBLE}/test_stop_message_stops.py",
    ),
    _row(
        "S6",
        "200 hostile ids, 100 hostile paths: 0 files outside",
        f"{_TROUBLE}/test_paths.py",
        f"{_ROUTING}/tags/test_texts.py",
    ),
    _row(
        "S7",
        "300 hostile values: exactly the expected heads; 100,000 spoiled messages: all come to an end",
        f"{_TROUBLE}/test_egress.py",
        f"{_TROUBLE}/test_trailers.py",
        f"{_TROUBLE}/test_odd_statuses.py",
    ),
    _row("S8", "remote peers are refused, whatever the socket", f"{_SYSTEM}/test_start.py"),
    _row(
        "S9",
        "what a page may ask: 40 hostile requests, 0 effects; the control socket is its owner's",
        f"{_TROUBLE}/test_web_pages.py",
        "tests/addons/control/test_panel.py",
        f"{_TROUBLE}/test_hostile_sockets.py",
        figure="{cases:,} hostile requests and questions: 0 effects",
    ),
    _row(
        "S10",
        "whether others may read the CA's key is told",
        "tests/addons/control/test_checks.py",
        figure="{cases:,} faults of a machine, the key that others may read among them: 0 untold",
    ),
    _row(
        "S11",
        "five codings × three ratios: refused, memory bounded",
        f"{_TROUBLE}/test_bombs.py",
        f"{_SYSTEM}/test_limits.py",
        figure="{cases:,} bombs and endless bodies: 0 taken, 0 that fill more than their bound",
    ),
    _row(
        "S12",
        "4 processes × 1,000 updates, some killed: 0 lost, 0 locks left",
        f"{_TROUBLE}/test_two_processes.py",
        f"{_TROUBLE}/test_clock_processes.py",
        f"{_TROUBLE}/test_locked_sessions.py",
    ),
    _row(
        "S13",
        "10,000 forged times: 0 accepted; clock jumps: 0 tasks lost, twice or early",
        f"{_TROUBLE}/test_forged_time.py",
        f"{_ROUTING}/clock/test_model.py",
    ),
    _row(
        "S14",
        "kill -9 at 500 moments: 0 acknowledged changes lost",
        f"{_TROUBLE}/test_crash.py::test_f21_kill_9_at_random_points",
        f"{_TROUBLE}/test_clock_crash.py::test_s14_kill_9_at_random_points",
    ),
    _row("F", "any bytes to each of 21 parsers, 100,000 each: only named errors", f"{_TROUBLE}/test_fuzz.py"),
    _row(
        "N",
        "neighbours on the same hosts, in the same Redis, at the same sockets; every proxy mode; mitmweb under load",
        f"{_TROUBLE}/test_neighbours.py",
        f"{_TROUBLE}/test_hostile_redis.py",
        f"{_TROUBLE}/test_hostile_collectors.py",
        f"{_TROUBLE}/test_hostile_imports.py",
        f"{_TROUBLE}/test_modes.py",
        f"{_TROUBLE}/test_slow_clients.py",
        f"{_SYSTEM}/test_other_addons.py",
    ),
    _row(
        "P",
        "15: a reload of 200 providers × 50 models stops the loop for at most 50 ms of computing; 20,000 small calls: what stays",
        "tests/sheet/growth.py",
        timed=True,
    ),
    _row(
        "Z",
        "a day of 20 streams: at most 1 MiB an hour, files and tasks as at the start",
        "tests/sheet/soak.py",
        apart=True,
        timed=True,
    ),
)
