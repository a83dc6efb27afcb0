"""What routes understand of servers' words, where nobody could see it from outside in time."""

from __future__ import annotations

import pytest

from hyper_proxy.storage.memcache_speech import MemcacheSpeech
from hyper_proxy.storage.redis_speech import RedisSpeech
from hyper_proxy.storage.redis_words import encode


@pytest.mark.parametrize(("left", "lives"), [(b":-1\r\n", 0), (b":0\r\n", 1), (b":1\r\n", 1), (b":5000\r\n", 5000)])
def test_a_key_that_ends_in_this_millisecond_does_not_live_for_ever_elsewhere(left: bytes, lives: int) -> None:
    assert RedisSpeech().put_in(b"key", [b"$4\r\ndump\r\n", left]) == encode("RESTORE", "key", lives, "dump")


def test_no_other_separator_than_the_space_is_known_to_memcached() -> None:
    speech = MemcacheSpeech()
    assert speech.keys_written(b"set a\tb 0 0 1\r\nx\r\n") == [b"a\tb"]
    assert speech.keys_missed(b"get a\tb c\x0bd e\r\n", b"VALUE a\tb 0 1\r\nx\r\nEND\r\n") == [b"c\x0bd", b"e"]


def test_a_removal_takes_no_version_to_another_server() -> None:
    speech = MemcacheSpeech()
    assert speech.removal(b"md a2V5 b C12 O3 k\r\n") == b"md a2V5 b O3 k\r\n"
    assert speech.removal(b"delete key\r\n") == b"delete key\r\n"
    assert speech.removal(b"ms key 1 C12\r\nx\r\n") is None
