"""What redis servers answer when somebody else has to be asked, or the same one later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.conn_pool.topology.discovered import Discovered
from hyper_proxy.conn_pool.topology.follow import FollowLeg
from hyper_proxy.conn_pool.topology.member import Member


class Followed(Discovered):
    """follows: by the first word of an error; what is not there goes to the client."""

    follows: ClassVar[Mapping[bytes, Callable[[Any, FollowLeg, bytes], bool]]]

    def follow(self, leg: FollowLeg, reply: bytes) -> bool:
        how = self.follows.get(reply[1:-2].split(b" ", 1)[0])
        if how is None:
            return False
        try:
            return how(self, leg, reply)
        except ReplyError:
            return False

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
