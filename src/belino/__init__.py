"""belino: chat platforms and AI agents, with every picture, voice note, file and thread in between."""

__version__ = "0.1.0"
