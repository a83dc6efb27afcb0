"""The stable codes of all findings, one row each.

HP1xx: reading. HP2xx: contradictions. HP3xx: arithmetic. HP4xx: safety.
A code never changes its meaning; one that is no longer used is not given to another finding.
"""

from __future__ import annotations

from dataclasses import dataclass

ERROR = "error"
WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Code:
    """What a finding of this code means; level ERROR refuses the file, WARNING only speaks."""

    level: str
    help: str


CODES: dict[str, Code] = {
    "HP101": Code(ERROR, "the file cannot be read"),
    "HP102": Code(ERROR, "the file is not UTF-8 text"),
    "HP103": Code(ERROR, "the file is not valid toml"),
    "HP104": Code(ERROR, "the key is unknown at this place"),
    "HP105": Code(ERROR, "the value has the wrong type"),
    "HP106": Code(ERROR, "the value is outside its range, or not one of the names allowed"),
    "HP107": Code(ERROR, "a key that must be there is missing"),
    "HP108": Code(ERROR, "the key or value is part of the design, but this version does not serve it yet"),
    "HP109": Code(ERROR, "an address is malformed"),
    "HP110": Code(ERROR, "an entry of servers is malformed"),
    "HP111": Code(ERROR, "a plug-in cannot be found or loaded"),
    "HP112": Code(ERROR, "root would run a plug-in that others can change"),
    "HP201": Code(ERROR, "two instances have the same name"),
    "HP202": Code(ERROR, "two listeners use the same address"),
    "HP203": Code(ERROR, "two servers of a level have the same alias"),
    "HP204": Code(ERROR, "the storage cannot serve this protocol"),
    "HP205": Code(ERROR, "the key has no meaning for this protocol or storage"),
    "HP206": Code(ERROR, "a key that this storage needs is missing"),
    "HP207": Code(ERROR, "keys cannot be placed: hash, distribution, hash_tag and servers do not fit together"),
    "HP208": Code(ERROR, "a username without a password"),
    "HP209": Code(ERROR, "an instance is a server of its own, maybe by way of others"),
    "HP210": Code(ERROR, "an sqlite level has one file"),
    "HP211": Code(ERROR, "there are not as many writers as servers"),
    "HP212": Code(ERROR, "a column is used for two purposes"),
    "HP213": Code(ERROR, "the levels of an instance do not fit together"),
    "HP214": Code(ERROR, "a route leads nowhere, or to too much"),
    "HP218": Code(ERROR, "what is said of a level's misses, errors or writes cannot be kept, or has no effect"),
    "HP222": Code(ERROR, "the tables of a level can't be what name, databases, tables and date say"),
    "HP223": Code(ERROR, "a lag is bounded where nothing is read from that could lag, or measured but not bounded"),
    "HP224": Code(ERROR, "what is said of a topology contradicts itself, or can't be served"),
    "HP225": Code(ERROR, "what is said of the rooms of a level contradicts itself, has no effect, or can't be kept"),
    "HP226": Code(ERROR, "keys cannot move so from one pool to another"),
    "HP227": Code(ERROR, "a level above another would go on to serve copies of what has been written"),
    "HP228": Code(ERROR, "the file of the log cannot be where it is to be"),
    "HP301": Code(ERROR, "the longest pause is shorter than the first one"),
    "HP302": Code(ERROR, "a limit is beyond what the protocol can carry"),
    "HP303": Code(WARNING, "connecting may take longer than waiting for an answer"),
    "HP304": Code(WARNING, "the clients and connections allowed need more file descriptors than the system gives"),
    "HP401": Code(WARNING, "a known trap of this hash, distribution or list of servers"),
    "HP402": Code(WARNING, "an entry of allow has no effect"),
    "HP403": Code(WARNING, "the sidecar, which asks no password of who reads, can be reached from other machines"),
    "HP404": Code(WARNING, "a server is listed twice in a level"),
    "HP405": Code(WARNING, "the storage has no place for a part of an item: requests with that part are refused"),
    "HP406": Code(WARNING, "a pool is in no route"),
    "HP407": Code(WARNING, "the code of a plug-in can be written by everybody"),
    "HP408": Code(WARNING, "an instance writes below copies that another one keeps"),
    "HP409": Code(WARNING, "what a server holds that returns to its room is left to a default"),
    "HP410": Code(WARNING, "this system lacks a user, group or folder, without which a fleet does not start"),
    "HP411": Code(WARNING, "a name or password looks like a variable, which nobody fills in"),
}
