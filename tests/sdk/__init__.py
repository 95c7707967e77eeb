"""The vendors' own SDKs as clients."""
