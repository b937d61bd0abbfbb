"""An agent whose model is a server on loopback, for answers that grow while they are written."""

from belino.testing.models.openai import OpenAIServer

KEY = "sk-test-0123456789abcdef"


def writer(model: OpenAIServer) -> dict[str, str]:
    """The table of the agent that asks this model."""
    asked = {"kind": "llm", "model": "openai:gpt-5-mini", "api": "chat"}
    return {**asked, "api_key": "env:MODEL_KEY", "base_url": f"{model.url}/v1"}
