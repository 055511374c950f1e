"""The possible contents of channels, numbered: the search compares numbers instead of contents."""

from functools import cache

from testbed.explore.freeze import Numbered


class ChannelContents:
    """Contents are tuples of message numbers, in the order of sending if the channels are FIFO.

    Number 0 is an empty channel.
    """

    def __init__(self, fifo: bool) -> None:
        self.fifo = fifo
        self._contents: Numbered[tuple[int, ...]] = Numbered()
        self._number(())
        self.add = cache(self._add)
        self.heads = cache(self._heads)

    def _add(self, channel: int, message: int) -> int:
        """The contents with one more message."""
        return self._number((*self._contents[channel], message))

    def _heads(self, channel: int) -> tuple[tuple[int, int], ...]:
        """Each message that may be received next, with the contents that remain."""
        content = self._contents[channel]
        eligible = content[:1] if self.fifo else tuple(dict.fromkeys(content))
        return tuple((message, self._without(content, message)) for message in eligible)

    def _without(self, content: tuple[int, ...], message: int) -> int:
        place = content.index(message)
        return self._number(content[:place] + content[place + 1 :])

    def _number(self, content: tuple[int, ...]) -> int:
        if not self.fifo:
            content = tuple(sorted(content))  # any fixed order will do
        return self._contents.number(content, content)
