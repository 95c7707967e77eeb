"""Files of authorities: what a person's system and company trust, and the proxy beside it.

A bundle's name is made from what is in it: two tools that need the same share one, and none changes under a tool that reads it.
"""

from __future__ import annotations

import hashlib
import os
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path

from .say import Failed, unless_full

TRUST = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE", "CURL_CA_BUNDLE")
"""Where a company's authority may have been named."""
OWN = "mitmproxy-ca-cert.pem"
"""An export of the proxy's own authority, perhaps of one that is gone: it is put beside by ourselves."""
_SYSTEM = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_BEGIN = "-----BEGIN CERTIFICATE-----"


def system() -> str:
    """What this system trusts; where it keeps no file, the list that came with the proxy."""
    usual = ssl.get_default_verify_paths().openssl_cafile
    for place in (usual, *_SYSTEM):
        if text := _read(Path(place)):
            return text
    import certifi

    return _read(Path(certifi.where()))


def named(env: Mapping[str, str], names: Iterable[str] = TRUST) -> str:
    """What the files hold that the environment names."""
    files = dict.fromkeys(Path(env[name]).expanduser() for name in names if env.get(name))
    texts = [_read(file) for file in files if file.name != OWN]
    return "\n".join(text for text in texts if text)


def companys(env: Mapping[str, str], own: str) -> str:
    """The authorities that the environment names beside the proxy's own, and beside what the proxy itself knows."""
    found = without(named(env), own)
    return found if found.strip() else ""


def without(text: str, own: str) -> str:
    """Certificates one by one, each once, the proxy's own left out."""
    mine = {_essence(one) for one in split(own)}
    kept = {essence: one for one in split(text) if (essence := _essence(one)) not in mine}
    return "\n".join(kept.values()) + ("\n" if kept else "")


def split(text: str) -> list[str]:
    end = "-----END CERTIFICATE-----"
    return [_BEGIN + piece.split(end, 1)[0] + end for piece in text.split(_BEGIN)[1:] if end in piece]


def _essence(certificate: str) -> str:
    return "".join(certificate.split())


def write(folder: Path, *texts: str) -> Path:
    """One file with all of them; each certificate once."""
    whole = without("\n".join(texts), "")
    path = folder / f"{hashlib.sha256(whole.encode()).hexdigest()[:16]}.pem"
    try:
        for one in (folder.parent.parent, folder.parent, folder):  # `parents` would give them whatever the umask allows
            one.mkdir(0o700, parents=True, exist_ok=True)
        if not path.is_file():
            half = path.with_suffix(f".{os.getpid()}")
            half.touch(0o600)
            half.write_text(whole)
            half.replace(path)
    except OSError as error:
        raise Failed(
            f"{path} cannot be written: {error.strerror}", unless_full(error, "set ROUTECODEX_USER_DIR to a folder of yours")
        ) from None
    return path


def _read(path: Path) -> str:
    """Of certificates only: some bundles carry text in other encodings between them."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text if _BEGIN in text else ""
