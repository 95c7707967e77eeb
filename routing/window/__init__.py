"""What a person who looks at a flow is shown of it: a call and its answer as a conversation, in plain lines.

1. Nothing here is computed unless somebody looks, and nothing here is sent to anybody.
2. Whatever a body holds, there are lines: what cannot be read is said, and what can be read is shown.
3. Meaning is carried by words and order: colours do not arrive everywhere.
"""
