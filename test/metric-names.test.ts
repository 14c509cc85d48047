/** Metrics exist under the names that the decisions of the design give them, with `hyperscale_` before. */

import { describe, expect, it } from "vitest";
import { millis } from "../src/core/base/brand.ts";
import { nodeId } from "../src/core/base/ids.ts";
import { Gate } from "../src/core/cluster/gate/gate.ts";
import { GATE_DEFAULTS } from "../src/core/cluster/gate/types.ts";
import { RequestGuard } from "../src/core/cluster/overload/request-guard.ts";
import { alive, Bench } from "../src/core/membership/swim/testing/bench.ts";
import { formatMetrics, type Metric } from "../src/host/control/prometheus.ts";
import {
  coordinateView,
  peerMetrics,
  peersView,
  unconfirmedView,
} from "../src/nodes/agent/peer-metrics.ts";
import { callsMetrics } from "../src/nodes/gate/calls-metrics.ts";
import { federatedMetrics } from "../src/nodes/gate/federated-metrics.ts";
import { pressureMetrics } from "../src/nodes/manager/pressure-metrics.ts";
import { workflowMetrics } from "../src/nodes/manager/workflow-metrics.ts";
import { ADMISSION_LIMITS } from "../src/wire/admission.ts";

/** "name{label,label}", without the prefix. */
function namesOf(metrics: readonly Metric[]): readonly string[] {
  const lines = formatMetrics(metrics).split("\n");
  const names = lines
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) =>
      line
        .replace(/^hyperscale_/, "")
        .replace(/="[^"]*"/g, "")
        .replace(/ [^ ]*$/, ""),
    );
  return [...new Set(names)];
}

/** A gate that has asked the one manager of a datacenter, and was answered. */
function gateOf(): Gate {
  const gate = new Gate(
    {
      ...{ self: nodeId("g1"), gates: [nodeId("g1")], boot: "b", version: "1.0.0" },
      ...{ errorKinds: [], addresses: {}, config: GATE_DEFAULTS },
      datacenters: [{ name: "eu", managers: ["m1"] }],
    },
    { job: () => null, jobs: () => [], openJobs: () => [], knows: () => false },
  );
  const room = { kind: "capacity", workers: 1, cores: 4, coresFree: 4, jobsQueued: 0 } as const;
  gate.step({ kind: "link", datacenter: "eu", manager: "m1", up: true }, millis(0), 0);
  for (const effect of gate.step({ kind: "tick" }, millis(1), 1))
    if (effect.kind === "ask")
      gate.step({ kind: "answered", id: effect.id, answer: room }, millis(2), 2);
  return gate;
}

describe("metrics under the names of", () => {
  it("AD-28: the pool of managers that a gate asks", () => {
    expect(namesOf(callsMetrics(gateOf().calls))).toEqual(
      expect.arrayContaining([
        "discovery_candidate_set_size{role,datacenter}",
        "discovery_candidate_set_changes_total{reason}",
        "discovery_locality_tier_selected_total{tier}",
        "discovery_pool_connections{state,role}",
        "discovery_pool_promotions_total{from_state,to_state}",
        "discovery_pool_evictions_total{reason}",
        "discovery_peer_ewma_latency_ms{peer_id,datacenter}",
        "discovery_peer_error_rate{peer_id}",
      ]),
    );
  });

  it("AD-33a: whether a gate reaches each datacenter", () => {
    expect(namesOf(federatedMetrics(gateOf().federated))).toEqual([
      "federated_probe_total{dc,result}",
      "federated_rtt_ms{dc}",
      "federated_state{dc}",
      "federated_transitions_total{dc,from,to}",
    ]);
  });

  it("AD-33b: in which state workflows are", () => {
    const states = { counts: new Map([["running", 1]]), transitions: new Map([["a b", 1]]) };
    expect(namesOf(workflowMetrics(states))).toEqual([
      "workflow_state_count{state}",
      "workflow_state_transitions_total{from,to}",
    ]);
  });

  it("AD-32: requests by class (BEX-8)", () => {
    const guard = new RequestGuard(ADMISSION_LIMITS.gate);
    expect(namesOf(pressureMetrics(guard.view(millis(0))))).toEqual(
      expect.arrayContaining([
        "pressure_class_in_flight{priority}",
        "pressure_class_acquired_total{priority}",
        "pressure_class_limit{priority}",
        "pressure_requests_shed_total{priority}",
      ]),
    );
  });

  it("AD-35: coordinates, timeouts and members that were never reached", () => {
    const bench = new Bench().meet("a", "b");
    // A manager that only others speak of, and one that falls silent.
    bench.receive("a", { kind: "gossip" }, [alive("ghost", 1)]);
    bench.advance(60_000, bench.answering("a"));
    const swim = bench.swim.snapshot();
    expect(unconfirmedView({ process: bench, view: () => swim }, 0)).toMatchObject([
      {
        peer: "ghost",
        role: "manager",
        confirmation_attempts: 0,
        next_attempt_in: expect.any(Number),
      },
    ]);
    expect(coordinateView({ process: bench, view: () => swim })).toMatchObject({
      convergence_status: "converging",
    });
    expect(peersView({ process: bench, view: () => swim })).toContainEqual(
      expect.objectContaining({ peer: "a", measured_rtt_samples: expect.any(Array) }),
    );
    bench.advance(60_000, bench.answering("a"));
    const { peers } = bench.swim.snapshot();
    expect([peers.attempts.manager, peers.removed.manager, peers.confirmed]).toEqual([3, 1, 2]);
    expect(peers.timeoutMs.count).toBeGreaterThan(0);
    expect(namesOf(peerMetrics(bench.swim.snapshot()))).toEqual(
      expect.arrayContaining([
        "vivaldi_coordinate_updates",
        ...["vivaldi_prediction_error_sum", "vivaldi_prediction_error_count"],
        "unconfirmed_peers_removed_gate",
        "unconfirmed_peers_removed_manager",
        "unconfirmed_peers_removed_worker",
        "confirmation_attempts_total{role}",
        "confirmation_attempts_success",
        "unconfirmed_cleanup_total{role,reason}",
        ...["peers_unconfirmed", "peers_alive", "peers_suspect", "peers_dead"],
        "transitions_unconfirmed_to_alive",
        "transitions_unconfirmed_to_removed",
        ...["adaptive_timeout_applied_sum", "adaptive_timeout_applied_count"],
        ...["latency_multiplier_sum", "load_multiplier_sum"],
        "adaptive_timeout_seconds{role}",
      ]),
    );
  });
});
