"""What redis servers answer when somebody else has to be asked, or the same one later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.conn_pool.topology.discovered import Discovered
from hyper_proxy.conn_pool.topology.follow import FollowLeg
from hyper_proxy.conn_pool.topology.member import Member

REDIRECTIONS = (b"MOVED", b"ASK")


class Followed(Discovered):
    """follows: by the first word of an error; what is not there goes to the client."""

    follows: ClassVar[Mapping[bytes, Callable[[Any, FollowLeg, bytes], bool]]]

    def follow(self, leg: FollowLeg, reply: bytes) -> bool:
        word = reply[1:-2].split(b" ", 1)[0]
        how = self.follows.get(word)
        if how is None:
            return False
        try:
            followed = how(self, leg, reply)
        except ReplyError:
            followed = False
        if not followed and word in REDIRECTIONS:  # a client that knows nothing of clusters must not go there itself
            told = f"its slots move faster than they can be followed ({reply[1:-2].decode(errors='replace')})"
            leg.give_up(leg.asked.node.error("unknown", told))
            return True
        return followed

    def wait(self, leg: FollowLeg, reply: bytes) -> bool:
        """Nothing was done, and soon it will be."""
        return self.later(leg)

    def doubtful(self, leg: FollowLeg, reply: bytes) -> bool:
        """The same, for something has changed."""
        self.doubt()
        return self.later(leg)

    def unfit(self, leg: FollowLeg, reply: bytes) -> bool:
        """A replica that lacks its master is not read from until it is looked at again."""
        group = leg.route.group
        if leg.asked.node is not group.master:
            cast(Member, leg.asked.node).late = reply[1:-2].decode(errors="replace")
            group.turn_to(group.master, group.replicas)
        self.doubt()
        return self.later(leg)
