"""The possible contents of channels, numbered: the search compares numbers instead of contents."""

EMPTY = 0


class ChannelContents:
    """Contents are tuples of message numbers, in the order of sending if the channels are FIFO."""

    def __init__(self, fifo: bool) -> None:
        self.fifo = fifo
        self._contents: list[tuple[int, ...]] = [()]
        self._numbers: dict[tuple[int, ...], int] = {(): EMPTY}
        self._with: dict[tuple[int, int], int] = {}
        self._heads: dict[int, tuple[tuple[int, int], ...]] = {}

    def add(self, channel: int, message: int) -> int:
        """The contents with one more message."""
        key = channel, message
        after = self._with.get(key)
        if after is None:
            after = self._with[key] = self._number((*self._contents[channel], message))
        return after

    def heads(self, channel: int) -> tuple[tuple[int, int], ...]:
        """Each message that may be received next, with the contents that remain."""
        heads = self._heads.get(channel)
        if heads is None:
            content = self._contents[channel]
            eligible = content[:1] if self.fifo else tuple(dict.fromkeys(content))
            heads = tuple((message, self._without(content, message)) for message in eligible)
            self._heads[channel] = heads
        return heads

    def _without(self, content: tuple[int, ...], message: int) -> int:
        place = content.index(message)
        return self._number(content[:place] + content[place + 1 :])

    def _number(self, content: tuple[int, ...]) -> int:
        if not self.fifo:
            content = tuple(sorted(content))  # any fixed order will do
        number = self._numbers.setdefault(content, len(self._contents))
        if number == len(self._contents):
            self._contents.append(content)
        return number
