"""The two Lua scripts by which redis reads and changes several keys in one step, for strings only (redis 7.0 or later).

A state is what a key has: its value, and the moment at which it ends in milliseconds since 1970, -1 for never; no value
means that there is no such key.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Script:
    """Sent by its digest; a server that does not know it is sent the text."""

    text: bytes
    digest: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", hashlib.sha1(self.text, usedforsecurity=False).hexdigest().encode())


READ = Script(b"""
local found = {}
for _, key in ipairs(KEYS) do
  local value = redis.pcall('GET', key)
  found[#found + 1] = type(value) == 'string' and value
  found[#found + 1] = redis.call('PEXPIRETIME', key)
end
return found
""")
"""Value and end of each key, in one array; a key of another type has no value."""

CHANGE = Script(b"""
local differs, found, at = false, {}, 1
for _, key in ipairs(KEYS) do
  local value, ends, before = false, -2, ARGV[at]
  if before ~= 'any' then
    value, ends = redis.call('GET', key), redis.call('PEXPIRETIME', key)
  end
  if before == 'absent' then
    differs = differs or value ~= false
  elseif before == 'present' then
    differs = differs or value ~= ARGV[at + 1] or tostring(ends) ~= ARGV[at + 2]
  end
  found[#found + 1] = value
  found[#found + 1] = ends
  at = at + 6
end
if differs then return found end
at = 4
for _, key in ipairs(KEYS) do
  local edit = ARGV[at]
  if edit == 'put' then
    if ARGV[at + 2] == '-1' then
      redis.call('SET', key, ARGV[at + 1])
    else
      redis.call('SET', key, ARGV[at + 1], 'PXAT', ARGV[at + 2])
    end
  elseif edit == 'expire' then
    if ARGV[at + 2] == '-1' then redis.call('PERSIST', key) else redis.call('PEXPIREAT', key, ARGV[at + 2]) end
  elseif edit == 'remove' then
    redis.call('UNLINK', key)
  end
  at = at + 6
end
return 'done'
""")
"""Six words a key: 'any', 'absent' or 'present' with value and end, and what to do if that holds for all keys: 'put'
with value and end, 'expire' with an end, 'remove', or 'keep'. Answers what is there instead, as READ, when it does not.
Only a key of which 'any' is said may be of another type.
"""
