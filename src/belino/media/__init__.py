"""Media: fetch bytes, detect their types, render them, and write their placeholders."""
