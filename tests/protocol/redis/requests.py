"""Realistic requests: at least one for every command and subcommand of redis 7.0 that may name a key, and odd ones."""

from __future__ import annotations

_KEYED = """
append k v
bitcount k 0 -1
bitfield k get u8 0
bitfield k set u8 0 1 get u8 8
bitfield_ro k get u8 0
bitop and d a b c
bitop not d a
bitpos k 1
blmove a b left right 0
blmpop 0 2 a b left count 3
blpop a b c 0
brpop a 1.5
brpoplpush a b 0
bzmpop 0 1 a min
bzpopmax a b 0
bzpopmin a 0
copy a b
copy a b db 1 replace
decr k
decrby k 2
del a
del a b c
dump k
eval return 0
eval return 0 x y
eval return 2 a b x
eval return 3 a b
eval return -1 a b
eval return abc a b
eval_ro return 1 a
evalsha 0123 1 a x
evalsha_ro 0123 0
exists a b
expire k 10 nx
expireat k 10
expiretime k
fcall f 1 a x
fcall_ro f 0 x
geoadd k nx 1 2 m
geodist k a b m
geohash k a b
geopos k a
georadius k 1 2 3 m
georadius k 1 2 3 m withdist store d
georadius k 1 2 3 m store d storedist e
georadius k 1 2 3 m store
georadius_ro k 1 2 3 m
georadiusbymember k m 3 km
georadiusbymember k m 3 km count 5 asc storedist d
georadiusbymember_ro k m 3 km
geosearch k frommember m byradius 3 km
geosearchstore d s frommember m byradius 3 km
get k
getbit k 1
getdel k
getex k persist
getrange k 0 1
getset k v
hdel k f g
hexists k f
hget k f
hgetall k
hincrby k f 1
hincrbyfloat k f 1.5
hkeys k
hlen k
hmget k f g
hmset k f v
hrandfield k 2
hscan k 0
hset k f v g w
hsetnx k f v
hstrlen k f
hvals k
incr k
incrby k 1
incrbyfloat k 1.5
lcs a b len
lindex k 0
linsert k before p v
llen k
lmove a b left right
lmpop 2 a b left
lmpop 2 a b
lmpop 5 a b left
lpop k 2
lpos k v
lpush k v w
lpushx k v
lrange k 0 -1
lrem k 0 v
lset k 0 v
ltrim k 0 1
memory usage k samples 5
mget a
mget a b a
migrate host 6379 k 0 100
move k 1
mset a 1 b 2
msetnx a 1 b 2
object encoding k
object freq k
object idletime k
object refcount k
persist k
pexpire k 10
pexpireat k 10
pexpiretime k
pfadd k a b
pfcount a b
pfdebug encoding k
pfmerge d a b
psetex k 10 v
pttl k
rename a b
renamenx a b
restore k 0 v replace
restore-asking k 0 v
rpop k
rpoplpush a b
rpush k v
rpushx k v
sadd k m n
scard k
sdiff a b
sdiffstore d a b
set k v
set k v ex 10 get
set k get
setbit k 1 1
setex k 10 v
setnx k v
setrange k 0 v
sinter a b
sintercard 2 a b limit 5
sinterstore d a b
sismember k m
smembers k
smismember k m n
smove a b m
sort k
sort k by w:* limit 0 5 get # get o:* asc store d
sort k store d store e
sort k by store store d
sort k limit store 1 get store
sort_ro k by w:* get #
spop k
srandmember k 2
srem k m
sscan k 0
strlen k
substr k 0 1
sunion a b
sunionstore d a b
touch a b
ttl k
type k
unlink a b
watch a b
xack k g 1-1
xadd k * f v
xautoclaim k g c 0 0
xclaim k g c 0 1-1
xdel k 1-1
xgroup create k g 0 mkstream
xgroup createconsumer k g c
xgroup delconsumer k g c
xgroup destroy k g
xgroup setid k g 0
xinfo consumers k g
xinfo groups k
xinfo stream k full
xlen k
xpending k g
xrange k - +
xread streams a 0
xread count 2 block 0 streams a b 0 0
xread COUNT 2 STREAMS a b 0-1 $
xreadgroup group g c streams a >
xreadgroup group g c count 1 block 5 noack streams a b > >
xreadgroup group streams streams streams a >
xrevrange k + -
xsetid k 1-1
xtrim k maxlen 5
zadd k nx 1 m
zcard k
zcount k 0 1
zdiff 2 a b withscores
zdiffstore d 2 a b
zincrby k 1 m
zinter 2 a b weights 1 2
zintercard 2 a b
zinterstore d 2 a b
zlexcount k - +
zmpop 2 a b min
zmscore k m
zpopmax k
zpopmin k 2
zrandmember k
zrange k 0 -1
zrangebylex k - +
zrangebyscore k 0 1
zrangestore d s 0 -1
zrank k m
zrem k m
zremrangebylex k - +
zremrangebyrank k 0 1
zremrangebyscore k 0 1
zrevrange k 0 1
zrevrangebylex k + -
zrevrangebyscore k 1 0
zrevrank k m
zscan k 0
zscore k m
zunion 2 a b aggregate max
zunion x a b
zunionstore d 2 a b weights 1 2
"""

_KEYLESS = """
acl whoami
client setname x
cluster nodes
command get x
config get save
dbsize
debug object k
echo x
flushall async
function list
info server
keys *
latency latest
module list
nothing a b
object foo k
object freq
get
get a b
ping
publish c m
pubsub channels
randomkey
scan 0
script exists a
select 1
slowlog get
spublish c m
ssubscribe a b
subscribe a b
swapdb 0 1
time x
unwatch
wait 0 0
"""


def _requests(text: str) -> list[list[bytes]]:
    return [line.encode().split() for line in text.splitlines() if line]


# Requests for which COMMAND GETKEYS is not what a server goes by when it runs them, and the keys that it would use, or
# those that are certain.
ODD: list[tuple[bytes, list[int]]] = [
    (b"lmpop 5 a b left", []),
    (b"migrate host 6379 k 0 100 copy keys x y", [3]),
    (b"pfmerge d", [1]),
    (b"sort k limit by store store d", [1, 6]),
    (b"xread block 5 streams a b 0", []),
    (b"xread block streams streams a 0", [4]),
    (b"xread foo streams a 0", []),
    (b"zunionstore d 5 a b", [1]),
    (b"zunionstore d x a b", [1]),
]

KEYED = _requests(_KEYED)
KEYLESS = _requests(_KEYLESS)
