"""Config of delivery."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryConfig:
    """How answers are handled that may have arrived, and those that are late."""

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
