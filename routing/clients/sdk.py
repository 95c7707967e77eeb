"""The official SDKs: any program may stand behind one, so its calls are read as strictly as an unknown tool's."""

from __future__ import annotations

from .client import ANTHROPIC, GEMINI, OPENAI, Client
from .unknown import read_strictly

SDK = read_strictly(
    Client(
        name="sdk",
        title="SDKs of Anthropic and OpenAI",
        tried="Python 2.11.0 and 3.52.0, Node 1.11.0 and 7.55.0",
        # How it is recognised
        agents=("anthropic/", "openai/", "asyncanthropic/", "asyncopenai/"),
        # How it repeats the history
        history="as the program writes it",
        # What it bears
        waits_s=300.0,
        honours_retry_after=True,
        # What brings it to the proxy
        programs=("python", "ipython", "uv", "uvx", "node", "npx", "tsx", "bun"),
        trusts=("SSL_CERT_FILE",),
        trusts_also=("NODE_EXTRA_CA_CERTS",),
        settings={"NODE_USE_ENV_PROXY": "1"},
        bases={**ANTHROPIC, **OPENAI},
    )
)

GOOGLE_SDK = read_strictly(
    Client(
        name="google-genai-sdk",
        title="Google's SDK",
        tried="Python 3.4.0, Node 3.1.0",
        # How it is recognised
        agents=("google-genai-sdk",),
        # How it repeats the history
        history="as the program writes it",
        # What it bears: it shows a 429 at once
        waits_s=600.0,
        # What brings it to the proxy
        trusts=("SSL_CERT_FILE",),
        bases=GEMINI,
    )
)

MISTRAL_SDK = read_strictly(
    Client(
        name="mistral-sdk",
        title="Mistral's SDK",
        tried="Python 3.7.0, Node 2.7.0",
        # How it is recognised
        agents=("mistral-client-",),
        # How it repeats the history
        history="as the program writes it",
        # What it bears
        waits_s=300.0,
        whole_calls=True,
        # What brings it to the proxy
        trusts=("SSL_CERT_FILE",),
    )
)

SDKS = (SDK, GOOGLE_SDK, MISTRAL_SDK)
