"""RouteCodex: steer LLM command-line tools by typing tags in the chat.

The package `routecodex` begins with this file; in a clone `addons/routecodex.py` takes its place.
"""
