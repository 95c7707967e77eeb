"""What is known of each tool: one module per client, `unknown` for all others; and what their calls are read as."""
