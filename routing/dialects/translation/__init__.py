"""A call of every client dialect to every provider dialect (`going_up`). Its answer comes down through `dialects/answer`.

1. A reader and a writer for each dialect meet in neutral values; none of them knows another dialect.
2. What the provider's dialect cannot say is named; a call that would mean nothing there is refused.
"""
