"""Media: fetch bytes, detect their types, and render them."""
