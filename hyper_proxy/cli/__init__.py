"""The `hyper-proxy` command: one file a verb, registered in one table.

A verb parses its arguments, calls one function of the other folders and turns the result into text and an exit status.
Must never hold logic that another verb or the fleet could need.
"""
