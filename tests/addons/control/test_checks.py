"""`routecodex doctor` names each of the faults that are seeded here, with a next step; and nothing where nothing is wrong."""

from __future__ import annotations

import datetime
import os
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest

from routecodex.addons import hello
from routecodex.addons.control import checks, places
from routecodex.addons.control.checks import CHECKS, Fault, Person, examine
from tests.addons.control.commands.conftest import Lister
from tests.addons.control.commands.person import Person as Typing
from tests.rig.certificates import proxy_authority
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.redis_server import IS_THERE, redis_server


@dataclass
class Patient:
    """A healthy machine; a test makes it ill."""

    home: Path
    lister: Lister
    env: dict[str, str]
    monkeypatch: pytest.MonkeyPatch

    @property
    def user(self) -> Path:
        return self.home / ".routecodex"

    @property
    def config(self) -> Path:
        return self.home / "c.yaml"

    def person(self, **more: object) -> Person:
        return Person(self.env, self.home, places.Places(self.user), str(self.config), **more)  # type: ignore[arg-type]

    def faults(self, check: str, **more: object) -> list[Fault]:
        found = list(CHECKS[check](self.person(**more)))
        assert all(fault.what and fault.next_step for fault in found)
        return found

    def listening(self) -> Iterator[int]:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            yield other.getsockname()[1]


@pytest.fixture
def lister() -> Iterator[Lister]:
    found = Lister()
    yield found
    found.close()


@pytest.fixture
def patient(lister: Lister, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Patient]:
    """A short path: a socket's is limited."""
    with tempfile.TemporaryDirectory(prefix="h-") as folder:
        yield healthy(Path(folder) / "h", lister, monkeypatch, capsys)


def healthy(home: Path, lister: Lister, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Patient:
    Typing(home, monkeypatch, capsys)
    shutil.copytree(proxy_authority(), home / ".routecodex" / "ca")
    (home / "c.yaml").write_text(lister.config())
    node = home / "bin" / "node"
    node.parent.mkdir()
    node.write_text("#!/bin/sh\necho v22.1.0\n")
    node.chmod(0o755)
    return Patient(home, lister, {"PATH": f"{node.parent}:/usr/bin:/bin"}, monkeypatch)


def test_a_healthy_machine_has_nothing(patient: Patient) -> None:
    found = {name: faults for name, faults in examine(patient.person()) if faults}
    assert not {name for name in found if name != "Codex's daemon"}, "somebody's Codex may run beside this test"


RIGHTS = "~routecodex:* +@read +@write +@scripting +@connection"
"""As docs/state.md names them."""

if IS_THERE:

    @pytest.mark.parametrize(
        "options, query, words",
        [
            pytest.param(["--appendonly", "yes"], "", [], id="well"),
            pytest.param(["--appendonly", "yes", "--maxmemory", "64mb"], "?prefix=us&wait=1", [], id="full, it refuses"),
            pytest.param(
                ["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"],
                "",
                ["maxmemory-policy allkeys-lru", "appendonly no"],
                id="it forgets",
            ),
            pytest.param(["--requirepass", "secret"], "", ["cannot be used: Authentication required"], id="no password"),
            pytest.param(["--rename-command", "INFO", "nothing"], "", ["cannot be used"], id="no INFO"),
            pytest.param(None, "", ["cannot be used: Error 111"], id="gone"),
            pytest.param([], "?timeout=5", ["cannot be used: AbstractConnection"], id="an unknown option"),
        ],
    )
    def test_the_sessions_store_is_looked_at(
        patient: Patient, tmp_path: Path, options: list[str] | None, query: str, words: list[str]
    ) -> None:
        with redis_server(tmp_path / "redis", *(options or [])) as server:
            if options is None:
                server.kill()
            patient.config.write_text(f'sessions: {{store: "{server.url}{query}"}}\n{patient.config.read_text()}')
            found = patient.faults("sessions' store")
        assert len(found) == len(words), found
        assert all(word in fault.what for word, fault in zip(words, found, strict=True)), found
        assert not any("secret" in str(fault) for fault in found)

    @pytest.mark.parametrize(
        ("default", "words"),
        [
            ("off", ["loses what it holds whenever it is started anew"]),
            ("off ~other:* +@write", ["loses what it holds whenever it is started anew"]),
            ("off ~* &* +@all", []),
        ],
    )
    def test_a_store_that_would_not_read_back_what_it_wrote(
        patient: Patient, tmp_path: Path, default: str, words: list[str]
    ) -> None:
        """Its user `default` is who reads the file, also where nobody can be that user."""
        for rights, said in (("~* &* +@all", words), (RIGHTS, ["does not tell this user how it keeps what it holds"])):
            (tmp_path / "users").write_text(f"user default {default}\nuser proxy on >secret {rights}\n")
            with redis_server(tmp_path / "redis", "--appendonly", "yes", "--aclfile", str(tmp_path / "users")) as server:
                url = server.url.replace("//", "//proxy:secret@")
                patient.config.write_text(f'sessions: {{store: "{url}"}}\nvirtualrouter: {{routing: {{default: [origin]}}}}\n')
                found = patient.faults("sessions' store")
            assert len(found) == len(said), found
            assert all(word in fault.what for word, fault in zip(said, found, strict=True)), found
            assert not any("secret" in str(fault) for fault in found)


def test_a_store_of_another_time_is_named(patient: Patient, tmp_path: Path) -> None:
    told = {"redis_version": "6.0.16", "redis_mode": "cluster", "aof_enabled": 1}
    old, cluster = checks._store_kept("redis://here", told)
    assert ("6.0.16" in old.what, old.grave, "cluster" in cluster.what) == (True, True, True)
    assert not list(checks._store_kept("redis://here", {"redis_version": "7.0.15", "aof_enabled": 1}))


Ill = Callable[[Patient], list[Fault]]


def old_python(patient: Patient) -> list[Fault]:
    return patient.faults("Python", version=(3, 10, 4))


def old_mitmproxy(patient: Patient) -> list[Fault]:
    patient.monkeypatch.setattr(metadata, "version", lambda name: "10.4.2")
    return patient.faults("mitmproxy")


def no_authority(patient: Patient) -> list[Fault]:
    shutil.rmtree(patient.user / "ca")
    return patient.faults("certificate")


def open_authority(patient: Patient) -> list[Fault]:
    (patient.user / "ca" / "mitmproxy-ca.pem").chmod(0o644)
    return patient.faults("certificate")


def expired_authority(patient: Patient) -> list[Fault]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    then = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(7)
    made = built.not_valid_before(then).not_valid_after(then + datetime.timedelta(1)).sign(key, hashes.SHA256())
    (patient.user / "ca" / "mitmproxy-ca-cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return patient.faults("certificate")


def bundle_without_ours(patient: Patient) -> list[Fault]:
    (patient.home / "bundle.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    patient.env |= {"HTTPS_PROXY": "http://127.0.0.1:1", "NODE_EXTRA_CA_CERTS": str(patient.home / "bundle.pem")}
    certificate = (patient.user / "ca" / "mitmproxy-ca-cert.pem").read_text()
    patient.monkeypatch.setattr(hello, "ask", lambda url: hello.Hello("user", 1, certificate, (), ""))
    return patient.faults("bundles of certificates")


def unwritable_home(patient: Patient) -> list[Fault]:
    patient.monkeypatch.setattr(os, "access", lambda path, mode: False)  # whoever runs the tests may be allowed everything
    return patient.faults("home folder")


def full_disk(patient: Patient) -> list[Fault]:
    patient.monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1 << 30, 1 << 30, 4096))
    return patient.faults("home folder")


def long_path(patient: Patient) -> list[Fault]:
    patient.monkeypatch.setenv("ROUTECODEX_USER_DIR", str(patient.home / ("x" * 100)))
    (patient.home / ("x" * 100) / "sessions" / "user").mkdir(parents=True)
    return patient.faults("control socket's path")


def taken_port(patient: Patient) -> list[Fault]:
    for port in patient.listening():
        (patient.user / "run").mkdir()
        (patient.user / "run" / "port").write_text(str(port))
        patient.monkeypatch.setattr(hello, "ask", lambda url: None)
        return patient.faults("port")
    raise AssertionError


def stale_socket(patient: Patient) -> list[Fault]:
    folder = patient.user / "sessions" / "user"
    folder.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / "user.sock"))
    return patient.faults("stale control socket")


def dead_proxy(patient: Patient) -> list[Fault]:
    patient.env["HTTPS_PROXY"] = "http://127.0.0.1:9"
    return patient.faults("proxy of this terminal")


def proxy_without_a_port(patient: Patient) -> list[Fault]:
    for wrong in ("http://127.0.0.1:port", "http://[::1"):
        patient.env["HTTPS_PROXY"] = wrong
        for told_once in ("providers reachable", "keys accepted", "company's proxy", "clock"):
            assert patient.faults(told_once) == []
    return patient.faults("proxy of this terminal")


def mitmproxys_own_settings(patient: Patient) -> list[Fault]:
    (patient.home / ".mitmproxy").mkdir()
    (patient.home / ".mitmproxy" / "config.yaml").write_text("stream_large_bodies: 1m\n")
    return patient.faults("mitmproxy's own settings")


def mistakes(patient: Patient) -> list[Fault]:
    patient.config.write_text("virtualrouter: {routing: {default: [nobody]}}\n")
    return patient.faults("configuration")


def unset_variable(patient: Patient) -> list[Fault]:
    patient.config.write_text(patient.lister.config("${NO_SUCH_VARIABLE}"))
    return patient.faults("variables and key files")


def open_key_file(patient: Patient) -> list[Fault]:
    (patient.home / "key").write_text("sk-right")
    (patient.home / "key").chmod(0o644)
    patient.config.write_text(patient.lister.config("${file:key}"))
    return patient.faults("variables and key files")


def unreachable(patient: Patient) -> list[Fault]:
    patient.config.write_text(patient.lister.config().replace(str(patient.lister.port), "9"))
    return patient.faults("providers reachable")


def refused_key(patient: Patient) -> list[Fault]:
    patient.config.write_text(patient.lister.config("sk-wrong"))
    return patient.faults("keys accepted")


def exception_of_a_provider(patient: Patient) -> list[Fault]:
    patient.env["NO_PROXY"] = "localhost,.anthropic.com"
    return patient.faults("NO_PROXY")


def base_url(patient: Patient) -> list[Fault]:
    patient.env["ANTHROPIC_BASE_URL"] = "https://gateway.example"
    return patient.faults("ways around the proxy")


def bedrock_in_the_tools_settings(patient: Patient) -> list[Fault]:
    (patient.home / ".claude").mkdir()
    (patient.home / ".claude" / "settings.json").write_text('{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}')
    return patient.faults("ways around the proxy")


def codex_daemon(patient: Patient) -> list[Fault]:
    code = patient.home / "codex"
    code.symlink_to(sys.executable)
    with subprocess.Popen([str(code), "-c", "input()", "app-server"], stdin=subprocess.PIPE) as running:
        try:
            return patient.faults("Codex's daemon")
        finally:
            running.kill()


def company_without_authority(patient: Patient) -> list[Fault]:
    from routecodex.addons.control.asking import Heard

    patient.env["HTTPS_PROXY"] = "http://proxy.company.example:3128"
    patient.monkeypatch.setattr(hello, "ask", lambda url: None)
    person = patient.person()
    person.heard = [("glm", Heard(problem="glm cannot be reached: CERTIFICATE_VERIFY_FAILED", next_step="x", reached=False))]
    return list(CHECKS["company's proxy"](person))


class Gatekeeper(socketserver.StreamRequestHandler):
    """Lets through who knows the password."""

    def handle(self) -> None:
        head = b"".join(iter(self.rfile.readline, b"\r\n"))
        knows = b"dXNlcjpwYXNzQHdvcmQ=" in head  # user:pass@word
        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" if knows else b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")


def company_asks_who(patient: Patient) -> list[Fault]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Gatekeeper) as company:
        threading.Thread(target=company.serve_forever, daemon=True).start()
        patient.env["HTTPS_PROXY"] = f"http://user:pass%40word@127.0.0.1:{company.server_address[1]}"
        assert patient.faults("company's proxy") == []
        patient.env["HTTPS_PROXY"] = f"http://127.0.0.1:{company.server_address[1]}"
        found = patient.faults("company's proxy")
        company.shutdown()
        return found


def wrong_clock(patient: Patient) -> list[Fault]:
    patient.lister.date = "Mon, 01 Jan 2024 00:00:00 GMT"
    return patient.faults("clock")


def old_node(patient: Patient) -> list[Fault]:
    (patient.home / "bin" / "node").write_text("#!/bin/sh\necho v20.9.0\n")
    return patient.faults("Node")


ILL: dict[Ill, str] = {
    old_python: "3.10.4 is too old",
    old_mitmproxy: "10.4.2 is not supported",
    no_authority: "no certificate",
    open_authority: "others may read the key",
    expired_authority: "has expired",
    bundle_without_ours: "lacks the proxy's certificate",
    unwritable_home: "cannot be written",
    full_disk: "is full",
    long_path: "longer than 103 bytes",
    taken_port: "something else listens",
    stale_socket: "left by a server that is gone",
    proxy_without_a_port: "HTTPS_PROXY holds no address of a proxy",
    dead_proxy: "nobody answers at 127.0.0.1:9",
    mitmproxys_own_settings: "sets stream_large_bodies",
    mistakes: 'unknown provider "nobody"',
    unset_variable: "NO_SUCH_VARIABLE is not set",
    open_key_file: "others on this machine may read it",
    unreachable: "glm cannot be reached at 127.0.0.1",
    refused_key: "the key is refused (401)",
    exception_of_a_provider: "NO_PROXY holds .anthropic.com",
    base_url: "ANTHROPIC_BASE_URL (this terminal)",
    bedrock_in_the_tools_settings: "CLAUDE_CODE_USE_BEDROCK",
    codex_daemon: "Codex's daemon runs",
    company_without_authority: "does not trust",
    company_asks_who: "wants to know who asks (407)",
    wrong_clock: "s ahead",
    old_node: "v20.9.0",
}


@pytest.mark.parametrize("ill", ILL, ids=lambda ill: ill.__name__)
def test_a_fault_is_named_with_its_next_step(patient: Patient, ill: Ill) -> None:
    found = ill(patient)
    assert any(ILL[ill] in fault.what for fault in found), found
    assert not any("sk-" in fault.what + fault.next_step for fault in found)


def test_a_server_that_knows_another_value(patient: Patient, tmp_path: Path) -> None:
    patient.config.write_text(patient.lister.config("${GLM_KEY_HERE}"))
    env = {"ROUTECODEX_USER_DIR": str(patient.user), "ROUTECODEX_SESSION_DIR": "", "GLM_KEY_HERE": "sk-of-the-server"}
    with Mitmdump(script=SCRIPT, config=patient.config.read_text(), folder=tmp_path / "s", env=env):
        patient.env["GLM_KEY_HERE"] = "sk-of-the-server"
        assert patient.faults("variables of the running server") == []
        patient.env["GLM_KEY_HERE"] = "sk-of-the-terminal"
        found = patient.faults("variables of the running server")
    assert "GLM_KEY_HERE has another value" in found[0].what


def test_a_check_that_cannot_look_does_not_end_the_others(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(person: Person) -> Iterator[Fault]:
        raise OSError("no")
        yield

    monkeypatch.setitem(CHECKS, "Python", broken)  # type: ignore[arg-type]
    found = dict(examine(patient.person()))
    assert len(found) == len(CHECKS)
    assert "could not be looked at" in found["Python"][0].what
