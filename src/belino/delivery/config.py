"""Config of sending."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryConfig:
    """What becomes of answers that may or may not have arrived, and of those that come late."""

    uncertain: Literal["hold", "resend"] = field(
        default="hold",
        metadata={
            "says": "What to do when an answer may have arrived and the platform cannot tell: `hold` waits for you, "
            "`resend` sends it once more and says that it may be there twice."
        },
    )
    hold_minutes: int = field(
        default=15,
        metadata={
            "says": "Answers that are older than this when belino starts are not sent until you ask for them.",
            "least": 1,
            "most": 525_600,
        },
    )
