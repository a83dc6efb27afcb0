"""The configuration: one table of settings, a reader that knows file and line, frozen records.

Reading lists every fault of a file at once; what is built from it never changes afterwards.
Must never start, bind, resolve or connect anything.
"""
