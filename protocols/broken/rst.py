"""RST with one mistake; ``testbed explore`` shows what it leads to."""

from typing import ClassVar

import numpy as np
from typing_extensions import override

from ..rst import RST, MatrixMessage


class PrintedRST(RST):
    """Merges the matrix that a message carries, and nothing more (Chandra et al. 2004, section 2.1).

    Broken rule: who delivers a message notes that it was sent to all its destinations. The matrix is
    from before the message, so the next message to another of them seems not to depend on it.
    """

    name: ClassVar[str] = "broken-printed-rst"

    @override
    def learn(self, message: MatrixMessage) -> None:
        np.maximum(self.SENT, message.SENT, out=self.SENT)
