"""The nouns of the doctor: facts that are read, findings that are made of them."""
