"""The paper's claims, each with its check and its evidence."""
