"""The one table of all statistics: JSON, Prometheus and docs/statistics.md follow from a row.

python -m hyper_proxy.stats.table > docs/statistics.md      after a change; a test compares them
"""

from __future__ import annotations

from dataclasses import dataclass

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

# Where a statistic stands in GET /stats, and the label that tells its values apart.
FLEET, CONFIG, WORKER, INSTANCE, NODE = "fleet", "config", "worker", "instance", "node"


@dataclass(frozen=True, slots=True)
class Statistic:
    """`split` names what a value is split by ("class", "kind", "level"), "" for a single number."""

    where: str
    name: str
    kind: str
    unit: str
    help: str
    split: str = ""


TABLE = (
    Statistic(FLEET, "uptime_s", GAUGE, "seconds", "Age of the master."),
    Statistic(FLEET, "workers", GAUGE, "", "Slots of workers."),
    Statistic(FLEET, "workers_ready", GAUGE, "", "Workers that serve."),
    Statistic(FLEET, "workers_leaving", GAUGE, "", "Workers of older generations that let their clients finish."),
    Statistic(FLEET, "imbalance", GAUGE, "", "Connections of the busiest worker, divided by the average; 1 is even."),
    Statistic(CONFIG, "generation", GAUGE, "", "Generation that serves."),
    Statistic(CONFIG, "last_reload_successful", GAUGE, "", "Whether the last reload was accepted."),
    Statistic(CONFIG, "last_reload_success_timestamp_s", GAUGE, "seconds",
              "When a configuration was accepted for the last time, since 1970."),
    Statistic(WORKER, "uptime_s", GAUGE, "seconds", "Age of the worker in this slot."),
    Statistic(WORKER, "restarts", COUNTER, "", "Workers of this slot that were replaced because they ended."),
    Statistic(WORKER, "beat_age_s", GAUGE, "seconds", "Time since the worker's last heartbeat."),
    Statistic(WORKER, "loop_lag_s", GAUGE, "seconds", "Longest delay of the event loop in the last heartbeats."),
    Statistic(WORKER, "connections", GAUGE, "", "Client connections that are open."),
    Statistic(WORKER, "in_flight", GAUGE, "", "Clients that wait for a reply."),
    Statistic(WORKER, "requests", COUNTER, "", "Requests that were answered, errors included."),
    Statistic(WORKER, "rss_bytes", GAUGE, "bytes", "Resident memory; pages shared with the master are included."),
    Statistic(WORKER, "fds", GAUGE, "", "Descriptors that are open."),
    Statistic(WORKER, "cpu_s", GAUGE, "seconds", "Processor time that the worker in this slot has used."),
    Statistic(WORKER, "memory_limit_bytes", GAUGE, "bytes", "Resident memory above which the worker takes in less."),
    Statistic(WORKER, "memory_shortages", COUNTER, "", "Times that it had more."),
    Statistic(WORKER, "leases_held", GAUGE, "", "Leases of keys that it asks for below, for all workers."),
    Statistic(WORKER, "replies_dropped", COUNTER, "", "Large replies that an error was said for: memory was short."),
    Statistic(WORKER, "faults", COUNTER, "", "Errors of the proxy itself that nobody has foreseen; the log has them."),
    Statistic(WORKER, "accept_pauses", COUNTER, "",
              "Times that accepting was interrupted for half a second: the system had no descriptor left."),
    Statistic(WORKER, "log_lost", COUNTER, "",
              "Lines of the log that were dropped: the disk was too slow for them, or refused them."),
    Statistic(INSTANCE, "clients", GAUGE, "", "Client connections that are open."),
    Statistic(INSTANCE, "in_flight", GAUGE, "", "Clients that wait for a reply."),
    Statistic(INSTANCE, "accepted", COUNTER, "", "Client connections that were accepted."),
    Statistic(INSTANCE, "refused", COUNTER, "",
              "Client connections that were closed at once: too many clients, or no descriptor or memory for them."),
    Statistic(INSTANCE, "probes", COUNTER, "",
              "Client connections that ended without a byte, as probes of a port do; `accepted` counts them, too."),
    Statistic(INSTANCE, "yields", COUNTER, "",
              "Times that a client's deep pipeline was interrupted, so that others had their turn."),
    Statistic(INSTANCE, "bytes_in", COUNTER, "bytes", "Read from clients."),
    Statistic(INSTANCE, "bytes_out", COUNTER, "bytes", "Written to clients."),
    Statistic(INSTANCE, "requests", COUNTER, "", "Requests that were answered, errors included.", "class"),
    Statistic(INSTANCE, "slow", COUNTER, "", "Reads of a client whose requests took log.slow_ms or longer."),
    Statistic(INSTANCE, "unlogged", COUNTER, "", "Slow or sampled ones that were too many to be recorded."),
    Statistic(INSTANCE, "behind", GAUGE, "", 'Keys that wait to be written below, where write = "behind".'),
    Statistic(INSTANCE, "behind_retries", COUNTER, "", "Times that the level below did not take what waited."),
    Statistic(INSTANCE, "behind_lost", COUNTER, "",
              "Values that were answered and given up: refused below, or still waiting when the worker had to end."),
    Statistic(INSTANCE, "local_hits", COUNTER, "",
              "Keys that were answered from copies in the worker, where a level is local."),
    Statistic(INSTANCE, "local_misses", COUNTER, "", "Keys that had no copy there, or one that was old."),
    Statistic(INSTANCE, "local_keys", GAUGE, "", "Copies of all workers."),
    Statistic(INSTANCE, "local_bytes", GAUGE, "bytes", "Memory that they take."),
    Statistic(INSTANCE, "level_misses", COUNTER, "",
              "Keys that a level above the last did not have, so that they were looked for below.", "level"),
    Statistic(INSTANCE, "level_skips", COUNTER, "",
              "Keys that were looked for below because the level's server had failed or was late.", "level"),
    Statistic(INSTANCE, "level_shared", COUNTER, "",
              "Keys of both kinds for which somebody in the worker was just asking: all got the one answer.", "level"),
    Statistic(INSTANCE, "level_fills", COUNTER, "",
              "Copies that were sent to the level's servers when a level below had answered.", "level"),
    Statistic(INSTANCE, "level_fills_skipped", COUNTER, "",
              "Copies that were not sent: the server was busy, not connected or just connected again, or a reload has "
              "just moved the key there.", "level"),
    Statistic(INSTANCE, "level_refreshes", COUNTER, "",
              "Copies of hot keys that were fetched anew before they ended.", "level"),
    Statistic(INSTANCE, "negative_hits", COUNTER, "",
              "Keys of which the level knew that there is nothing below (negative_ttl).", "level"),
    Statistic(INSTANCE, "leases", COUNTER, "",
              "Leases that workers got, to ask below for all workers of the machine.", "level"),
    Statistic(INSTANCE, "lease_waits", COUNTER, "",
              "Keys that were waited for since another worker had the lease.", "level"),
    Statistic(INSTANCE, "lease_timeouts", COUNTER, "",
              "Keys for which that was in vain: the other one has not ended in time.", "level"),
    Statistic(INSTANCE, "marks_owed", GAUGE, "",
              "Marks of written keys that have still to be set: the level's server could not be asked.", "level"),
    Statistic(INSTANCE, "below_reads", GAUGE, "", "Reads that are under way to the last of several levels."),
    Statistic(INSTANCE, "below_waiting", GAUGE, "", "Reads that wait for their turn there (write_back.max_below)."),
    Statistic(INSTANCE, "below_refused", COUNTER, "", "Reads whose turn did not come in time."),
    Statistic(INSTANCE, "errors", COUNTER, "", "Errors that a client was told of, or lost its connection by.", "kind"),
    Statistic(INSTANCE, "latency_us", HISTOGRAM, "microseconds", "From reading a request to its reply.", "class"),
    Statistic(NODE, "requests", COUNTER, "", "Requests that were sent to the server."),
    Statistic(NODE, "by_class", COUNTER, "", "Requests that the server was to get, sent or not.", "class"),
    Statistic(NODE, "errors", COUNTER, "", "Requests that the server failed, and failed connections.", "kind"),
    Statistic(NODE, "bytes_in", COUNTER, "bytes", "Read from the server."),
    Statistic(NODE, "bytes_out", COUNTER, "bytes", "Written to the server."),
    Statistic(NODE, "in_flight", GAUGE, "", "Requests that were sent and have no reply yet."),
    Statistic(NODE, "queued", GAUGE, "", "Requests that wait to be sent."),
    Statistic(NODE, "pending_bytes", GAUGE, "bytes", "Size of the requests that wait to be sent."),
    Statistic(NODE, "connections", GAUGE, "", "Connections that are open."),
    Statistic(NODE, "connects", COUNTER, "", "Connections that were made."),
    Statistic(NODE, "backing_off", GAUGE, "", "Workers that do not try the server just now, because it failed."),
    Statistic(NODE, "down", GAUGE, "",
              "Workers whose last attempt to reach the server failed; until a new connection answers."),
    Statistic(NODE, "out_of_service", GAUGE, "",
              "Workers in which the server is out of service by an operator's order."),
    Statistic(NODE, "late", GAUGE, "",
              "Workers that do not read from the server, because its replication lags more than max_lag_s."),
    Statistic(NODE, "lag_s", GAUGE, "seconds", "How far it is behind its writer, as the worker heard that heard most."),
    Statistic(NODE, "serving", GAUGE, "",
              "Workers that send it the requests for its keys; with two rooms, its peer has those of the others."),
    Statistic(NODE, "behind", GAUGE, "",
              "Workers that know that it has missed writes, so that it does not serve before it is equal to its peer."),
    Statistic(NODE, "missed", GAUGE, "", "Keys that it has missed writes of, and that have still to be copied to it."),
    Statistic(NODE, "took_over", COUNTER, "",
              "Times that it began to serve in the place of its peer, which had failed or was not preferred."),
    Statistic(NODE, "copied", COUNTER, "", "Keys that were copied to it, since it had missed writes of them."),
    Statistic(NODE, "handed_on", COUNTER, "",
              "Requests that it got because another one had failed them (routes failover and eject)."),
    Statistic(NODE, "warmed", COUNTER, "", "Keys that were put there from a warmer pool (route warm_up)."),
    Statistic(NODE, "hand_overs", COUNTER, "",
              "Times that it was asked to hand keys of requests to another server, while keys move (resharding)."),
    Statistic(NODE, "handed_over", COUNTER, "",
              "Times that it still had some of them; where this has stopped to grow, what is asked for has moved."),
    Statistic(NODE, "latency_us", HISTOGRAM, "microseconds", "From sending a request to the server to its reply."),
)  # fmt: skip

PLACES = {
    FLEET: "Prometheus, no label; in JSON `master.uptime_s`, `workers`, `leaving` and `imbalance` say it",
    CONFIG: "Prometheus, no label; in JSON `config.generation`, `config.last_reload.ok` and `config.last_success_at`",
    WORKER: "`workers[]`: one record for each worker; Prometheus label `slot`",
    INSTANCE: "`instances.NAME`: sums over all workers, ended ones included; label `instance`",
    NODE: "`instances.NAME.nodes.LABEL`: sums over all workers, ended ones included; labels `instance`, `node`",
}

PREFACE = """\
# Statistics

`GET /stats` (JSON) and `GET /metrics` (Prometheus) of the admin address. Counters only grow, also when a worker is
replaced; gauges are those of the living workers. The counters of an instance or a node that a reload takes away go
with it, and begin at 0 when a later reload brings it back; `rate()` takes that for a restart, which is right. A
histogram stands in JSON as `count`, `sum_us`, `p50`, `p90`, `p99`, `p999`, `max` (microseconds, at most 1/16 too
high) and `cells`, the counts they come from: `[[cell, count], ...]`. Histograms of many workers are added cell by
cell and percentiles taken afterwards; percentiles are never averaged.

Counting costs a request an addition. `by_class` of a node is counted where a request is handed to a connection,
`requests` where it is sent, so one that could not be sent is in the first only.

## Slow requests

Of the clients of every protocol. The requests of one read of one client are answered together and are one record. When
they take `log.slow_ms` or longer, the record is logged (event `request.slow`, level warning), and the latest 128 of
each worker are in `GET /slowlog`. With `log.access_sample` that share of requests is logged in the same form (event
`request.sampled`, level info); 1 is an access log: every read is one record. Commands that wait for other clients
(BLPOP ...) are no slow requests.

A sampled record of the plainest kind is written by compiled code straight into the queue of the log, and nothing else
than that queue bounds their number; what does not fit there is counted as `log_lost`. Of that kind is a read in which
nothing failed, and whose first request has its one key at the usual place or is split by its keys (GET, SET, MGET,
DEL; what memcached is asked for); none of HTTP or a plug-in's protocol is.
The record of any other takes the processor as long as some twenty plain GETs: no
more than 100 slow ones and 10 000 sampled ones of these are made in a second and worker; the others are counted as
`unlogged`, and cost nothing.

- `at`: when it was read, seconds since 1970; in the log the line has its own time, that of the end
- `slot`, `instance`, `client`: worker, instance, and the client's address
- `command`, `keys`, `key`: of the first request: its name, how many keys it has, and its first key; no keys where their
  number is wrong, or where the request was refused before all of it was there. No name where it is none of the
  protocol's commands: the word may be a piece of a value that was sent with a wrong length
- `requests`: how many there were
- `node`: the label of the server that failed, or else of the one that was waited for last, also below other levels;
  empty where none was asked: the proxy answers, or a file
- `bytes_in`, `bytes_out`: size of the requests and of the replies; without the rest of a value that memcache clients
  still send when it is refused already
- `total_us`: from reading the requests until the client had taken the reply; the sum of the phases, but for rounding
- `error`: kind of the failure of that server, or else of the first that failed (docs/errors.md); `reply` if the reply
  of redis or memcache clients begins with another error; the code of the first response of HTTP that says one, or what
  a plug-in calls its error; else empty

The phases, in microseconds, follow each other. Where several servers were asked, `queue_us`, `connect_us` and
`storage_us` are those of the reply that came last.

- `parse_us`: from the read until all requests are taken apart and handed to the servers' connections; of a read of up
  to 4 KB this is a part of `queue_us`
- `queue_us`: until the requests were sent: waiting for the event loop, for the requests ahead, for a server that reads
  slowly (back-pressure); without the time of the next phase
- `connect_us`: in which the connection was made and greeted
- `storage_us`: from sending until the reply was read, or given up; of an embedded storage the time of its work
- `merge_us`: until the reply was put together; replies to other clients that came in the same read go first. With
  several levels, what the lower ones took is in it
- `write_us`: until the client had taken all of it; a client that reads slowly shows here

## Keys

About one request in 100 is sampled. `hot_keys` of an instance, `[[key, requests], ...]`,
are the 32 keys that were asked for most: the number is that of all requests, estimated, of which each counts half
after a minute, a quarter after two. `big_keys`, `[[key, bytes], ...]`, are the 32 largest values that were seen in the
last ten minutes, by reading or writing them; in a pipeline with multi-key reads the sizes of values that are read are
not seen. Both are lists of the living workers, added up by key.

A key is shown as its digest and its length in bytes, `26c7827d889f6da3:5`: XXH64 in hexadecimal, which names a key
and hides none that can be guessed. `hyper-proxy explain` tells that of a key. With `admin.show_keys` the keys
themselves are shown, up to 64 characters, what is not printable as `\\xNN`. Keys above 512 bytes are not followed.

This page is made from `hyper_proxy/stats/table.py`.
"""

HEAD = ("| name | kind | unit | meaning | metric |", "|---|---|---|---|---|")


def of(where: str) -> list[Statistic]:
    """The rows of one place."""
    return [row for row in TABLE if row.where == where]


def metric_name(row: Statistic) -> str:
    """As Prometheus knows it: base units, in the name."""
    base = row.name.removesuffix("_us").removesuffix("_s")
    unit = "_seconds" if row.unit.endswith("seconds") else ""
    return f"hyper_proxy_{row.where}_{base}{unit}" + ("_total" if row.kind == COUNTER else "")


def document() -> str:
    """docs/statistics.md."""
    lines = [PREFACE]
    for where, place in PLACES.items():
        lines += [f"## {where.capitalize()}", "", place, "", *HEAD]
        for row in of(where):
            by = f", by {row.split}" if row.split else ""
            lines.append(f"| `{row.name}` | {row.kind}{by} | {row.unit} | {row.help} | `{metric_name(row)}` |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(document(), end="")
