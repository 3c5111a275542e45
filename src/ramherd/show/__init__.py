"""Text and screens. Reads decisions and measurements; changes nothing."""
