"""Every client dialect to every provider dialect: a call goes up (`going_up`), its answer comes down (`coming_down`).

1. A reader and a writer for each dialect and direction meet in neutral values; none of them knows another dialect.
2. What the provider's dialect cannot say is named; a call that would mean nothing there is refused.
3. The client gets a stream of its own dialect with one start and one end, or an error of it; never an invented end.
"""
