"""The tests; they mirror the folders of the code, one file a file. Helpers live in tests/kit."""
