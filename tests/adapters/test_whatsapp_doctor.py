"""What the doctor finds about a business number: each common mistake with its cure."""

from typing import Any

import pytest

from adapters.whatsapp_harness import PATH, Business, Businesses
from belino.testing import WhatsAppServer
from belino.testing.faults import CannedAnswer


def named(findings: Any, name: str) -> Any:
    return next(finding for finding in findings if finding.name == f"whatsapp:default {name}")


async def test_a_number_that_is_well_is_found_well(whatsapp: WhatsAppServer, business: Business) -> None:
    whatsapp.hook.url = f"https://bot.example.org{PATH}"
    findings = await business.adapter.check()
    assert findings[0].name == "whatsapp:default token"
    assert all(finding.ok for finding in findings), findings
    assert "Belino Demo" in findings[0].says


@pytest.mark.parametrize(
    ("fault", "cure"),
    [
        (CannedAnswer(status=401, parameters={"code": 190}), "System users"),
        (CannedAnswer(status=400, parameters={"code": 100}), "phone_number_id"),
        (CannedAnswer(status=503), "reaches the Cloud API"),
    ],
)
async def test_a_refused_token_is_the_first_thing_found(
    whatsapp: WhatsAppServer, business: Business, fault: Any, cure: str
) -> None:
    whatsapp.fail("number", fault)
    (found,) = await business.adapter.check()
    assert (found.name, found.ok) == ("whatsapp:default token", False)
    assert cure in found.cure


@pytest.mark.parametrize("url", ["", "https://other.example.org/hook", f"https://bot.example.org{PATH}2"])
async def test_a_webhook_that_is_missing_or_elsewhere_is_named_with_its_cure(
    whatsapp: WhatsAppServer, business: Business, url: str
) -> None:
    whatsapp.hook.url = url
    found = named(await business.adapter.check(), "webhook")
    assert not found.ok
    assert "public_url" in found.cure


async def test_a_number_that_meta_limits_is_told(whatsapp: WhatsAppServer, businesses: Businesses) -> None:
    body = b'{"verified_name": "Belino", "status": "BANNED", "quality_rating": "RED"}'
    whatsapp.fail("number", CannedAnswer(status=200, body=body))
    findings = await businesses().adapter.check()
    assert "banned" in named(findings, "number").says
    assert not named(findings, "quality").ok
