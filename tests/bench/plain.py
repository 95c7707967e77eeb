"""The yardstick: plain mitmdump that passes answers on as they come."""

from mitmproxy.http import HTTPFlow


def responseheaders(flow: HTTPFlow) -> None:
    assert flow.response is not None
    flow.response.stream = True
