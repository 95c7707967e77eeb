"""Files of authorities: everybody's, the company's, and the proxy's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from routecodex.addons.control import certificates


def certificate(name: str) -> str:
    return f"-----BEGIN CERTIFICATE-----\n{name}\n-----END CERTIFICATE-----"


A, B, C = map(certificate, "ABC")


def test_each_certificate_once() -> None:
    text = f"# notes\n{A}\n{B}\r\nwords\n{A}\n-----BEGIN CERTIFICATE-----\ncut"
    assert certificates.split(text) == [A, B, A]
    assert certificates.split(certificates.without(text, B)) == [A]


def test_a_bundle_is_named_for_what_is_in_it(tmp_path: Path) -> None:
    one = certificates.write(tmp_path, A, f"{B}\n{A}")
    assert certificates.split(one.read_text()) == [A, B]
    assert certificates.write(tmp_path, f"{A}\n", B) == one
    assert certificates.write(tmp_path, A, C) != one
    assert len(list(tmp_path.iterdir())) == 2, "halves are left behind"


def test_what_the_environment_names(tmp_path: Path) -> None:
    company, empty, own = tmp_path / "company.pem", tmp_path / "empty.pem", tmp_path / certificates.OWN
    company.write_bytes(f"{A}\n".encode() + b"\xff\xfe\n")
    empty.write_text("nothing")
    own.write_text(C)
    env = {"SSL_CERT_FILE": str(company), "NODE_EXTRA_CA_CERTS": str(empty), "REQUESTS_CA_BUNDLE": str(tmp_path / "gone.pem")}
    assert certificates.split(certificates.named(env)) == [A]
    assert certificates.companys({"SSL_CERT_FILE": str(own)}, "") == "", "an authority of an earlier proxy"
    assert certificates.companys(env, A) == ""


def test_the_system_trusts_somebody() -> None:
    assert len(certificates.split(certificates.system())) > 10


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_a_bundle_is_its_owners_alone(tmp_path: Path) -> None:
    path = certificates.write(tmp_path / "run" / "bundles", A)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
