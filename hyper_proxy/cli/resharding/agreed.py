"""Does the fleet of this file go by what the file says? Its reload may have been refused, or forgotten: then it does
not look for keys where they are moved to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hyper_proxy.cli.admin import Admin, Unreachable
from hyper_proxy.cli.resharding.plan import BadOrder, Plan

HOMES = ("servers", "pools", "route", "hash", "distribution", "hash_tag", "db")
"""What says where the keys of a level are."""


def check_fleet(admin: Admin, plan: Plan) -> None:
    """Raises BadOrder when the fleet that serves this file has other homes for the keys. Where none answers, or that of
    another file, there is nobody to ask: the tool needs the servers alone."""
    try:
        admin.expect_fleet()
        status, answer = admin.ask("GET", "/config")
    except Unreachable:
        return
    if status == 200 and _homes(answer["config"], plan.instance) != _chosen(json.loads(json.dumps(asdict(plan.level)))):
        raise BadOrder(
            f"the fleet of {plan.file.file} has other servers or another route for '{plan.instance}' than the file: it "
            "would not find what is moved. `hyper-proxy ctl reload` first, and see that it is not refused"
        )


def _homes(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Those of an instance in the configuration in force, {} if there is none of this name."""
    levels = [one["levels"][-1] for one in config["instances"] if one["name"] == name]
    return _chosen(levels[0]) if levels else {}


def _chosen(level: Mapping[str, Any]) -> dict[str, Any]:
    return {key: level[key] for key in HOMES}
