"""Throw-away certificate authorities: one for the fake provider, one for mitmproxy, both made once per test process.

1. The provider's server makes a certificate for whatever name a client asks for, so every real host name can be played.
2. All files live in one temporary folder that goes when the process ends.
"""

from __future__ import annotations

import atexit
import datetime
import functools
import ipaddress
import shutil
import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from mitmproxy.certs import CertStore


@functools.cache
def folder() -> Path:
    path = Path(tempfile.mkdtemp(prefix="rig-certificates-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@functools.cache
def proxy_authority() -> Path:
    """A folder with mitmproxy's CA files; making them in every proxy would cost a start-up second each."""
    path = folder() / "mitmproxy"
    CertStore.create_store(path, "mitmproxy", 2048)
    return path


class Authority:
    """The CA that signs the fake provider's certificates."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "rig provider authority")])
        self._certificate = self._sign(self._name, self._key.public_key(), authority=True, names=())
        self._server_key = ec.generate_private_key(ec.SECP256R1())
        self.path = folder() / "provider-ca.pem"
        self.path.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))
        self._contexts: dict[str, ssl.SSLContext] = {}

    def context(self, name: str = "localhost") -> ssl.SSLContext:
        """A server's TLS settings for one host name."""
        if name not in self._contexts:
            self._contexts[name] = self._make_context(name)
        return self._contexts[name]

    def server_context(self) -> ssl.SSLContext:
        """TLS settings for any host name: the certificate is made when the client says which (kept as `asked_for`)."""
        context = self._make_context("localhost")

        def choose(connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
            if name:
                connection.context = self.context(name)
                connection.asked_for = name  # type: ignore[attr-defined]

        context.sni_callback = choose
        return context

    def server_file(self, name: str) -> Path:
        """A server's key and certificate for one host name, and for this machine's address."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
        certificate = self._sign(subject, self._server_key.public_key(), authority=False, names=(name, "127.0.0.1"))
        file = folder() / f"server-{len(self._contexts)}-{abs(hash(name))}.pem"
        file.write_bytes(
            self._server_key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        return file

    def _make_context(self, name: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server_file(name))
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, authority: bool, names: tuple[str, ...]
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=True,
                    key_cert_sign=authority,
                    crl_sign=authority,
                    content_commitment=False,
                    key_encipherment=False,
                    data_encipherment=False,
                    key_agreement=False,
                    encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
            builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@functools.cache
def provider_authority() -> Authority:
    return Authority()


def client_context(*authorities: Path, protocols: tuple[str, ...] = ()) -> ssl.SSLContext:
    """A client that trusts these authorities and no others."""
    return _trusting(tuple(path.read_text(encoding="ascii") for path in authorities), protocols)


def common_context(*authorities: Path, protocols: tuple[str, ...] = ()) -> ssl.SSLContext:
    """The same for all who trust the same: nobody may change it."""
    return _common(tuple(path.read_text(encoding="ascii") for path in authorities), protocols)


def _trusting(authorities: tuple[str, ...], protocols: tuple[str, ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for certificates in authorities:
        context.load_verify_locations(cadata=certificates)
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


_common = functools.lru_cache(maxsize=32)(_trusting)
