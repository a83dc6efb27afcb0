"""Hash functions, one family per file; each is a subclass of Hash and a row of tables.py."""
