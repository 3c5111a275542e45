"""Text and screens. Reads what was decided and measured; changes nothing."""
