"""The official SDKs: any program may stand behind one, so its calls are read as strictly as an unknown tool's."""

from __future__ import annotations

from .client import Client
from .unknown import read_strictly

SDK = read_strictly(
    Client(
        name="sdk",
        title="SDKs",
        tried="anthropic 1.17.0, openai 3.51.0, google-genai 3.3.0; @anthropic-ai/sdk 1.9.0, openai 6.49.0",
        # How it is recognised
        agents=("anthropic/", "openai/", "asyncanthropic/", "asyncopenai/", "google-genai-sdk"),
        # How it repeats the history
        history="as the program writes it",
        # What it bears
        waits_s=300.0,
        honours_retry_after=True,
        # What brings it to the proxy
        trusts=("SSL_CERT_FILE",),
        trusts_also=("NODE_EXTRA_CA_CERTS",),
        settings={"NODE_USE_ENV_PROXY": "1"},
    )
)
