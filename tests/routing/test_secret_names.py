"""Which names are those of credentials."""

from __future__ import annotations

import pytest

from routecodex.routing.secret_names import is_secret_field, is_secret_header, is_secret_param, is_secret_text

HEADERS = (
    "authorization proxy-authorization x-api-key api-key x-goog-api-key cookie set-cookie set-cookie2 helicone-auth "
    "x-goog-iam-authorization-token x-portkey-api-key x-portkey-virtual-key cf-aig-authorization ocp-apim-subscription-key "
    "x-mfa-code x-amz-security-token x-amz-signature cf-access-client-secret cf-access-jwt-assertion x-vercel-protection-bypass "
    "x-vercel-oidc-token sec-websocket-protocol dpop apikey x-litellm-api-key x-auth-token x-csrf-token x-api-keys "
    "x-authz x-shopify-hmac-sha256"
)
NO_HEADERS = (
    "content-type x-ratelimit-limit-tokens anthropic-ratelimit-input-tokens-remaining sec-websocket-key sec-websocket-accept "
    "idempotency-key x-stainless-os anthropic-beta anthropic-version x-author www-authenticate x-codex-turn-state accept "
    "chatgpt-account-id x-claude-code-session-id x-should-retry surrogate-key x-keyboard access-control-allow-headers"
)
PARAMS = (
    "%256Bey %25256Bey "
    "key KEY %6Bey k%65y api_key api-key oauth_token oauth%5Ftoken access_token X-Amz-Signature sig code client_secret "
    "hmac pass SAMLResponse"
)
NO_PARAMS = "alt monkey key2 keys beta pageSize max_tokens encode %"
BUNDLES = (
    "authorization headers extra_headers httpHeaders authConfig apiAuth oauthConfig authentication vertex_credentials byok "
    "authorization_token "
    "domain_secrets api_keys apiKeyString api_key aws_secret_access_key aws_access_key_id password langfuse_secret_key "
    "api_key_2 apikey2 connectionString passcode"
)
TEXTS = (
    "key accessToken idToken azure_ad_token user_access_token aws_session_token keyString tokenString access_token_value "
    "keyMaterial"
)
NO_TEXTS = (
    "max_tokens prompt_cache_key eos_token stop_token_ids return_token_ids skip_special_tokens max_completion_tokens tokens "
    "logprobs tool_choice keywords include author budget_tokens end_of_turn_token pageToken sort_key"
)


@pytest.mark.parametrize("name", HEADERS.split())
def test_a_header_that_holds_a_credential(name: str) -> None:
    assert is_secret_header(name)
    assert is_secret_header(name.title())


@pytest.mark.parametrize("name", ["", *NO_HEADERS.split()])
def test_a_header_that_holds_none(name: str) -> None:
    assert not is_secret_header(name)


@pytest.mark.parametrize("name", PARAMS.split())
def test_a_parameter_that_is_a_credential(name: str) -> None:
    assert is_secret_param(name)


@pytest.mark.parametrize("name", ["", *NO_PARAMS.split()])
def test_a_parameter_that_is_none(name: str) -> None:
    assert not is_secret_param(name)


@pytest.mark.parametrize("name", BUNDLES.split())
def test_a_field_that_is_a_credential_whatever_it_holds(name: str) -> None:
    assert is_secret_field(name)
    assert is_secret_text(name)


@pytest.mark.parametrize("name", TEXTS.split())
def test_a_field_whose_text_is_a_credential(name: str) -> None:
    assert is_secret_text(name)
    assert not is_secret_field(name)


@pytest.mark.parametrize("name", ["", *NO_TEXTS.split()])
def test_a_field_whose_text_is_none(name: str) -> None:
    assert not is_secret_text(name)
