/** Coordinates, adaptive timeouts and members that were never reached: metrics and debug views of AD-35. */

import type { Role } from "../../core/base/ids.ts";
import type { Swim } from "../../core/membership/swim/swim.ts";
import type { MemberView, SwimView } from "../../core/membership/swim/types.ts";
import { type Metric, metricFamily } from "../../host/control/prometheus.ts";

const { counter, gauge, labelled } = metricFamily("hyperscale_");
/** A coordinate predicts well enough to be relied on: its relative error, and from how many samples. */
const CONVERGED_ERROR_MAX = 0.2;
const CONVERGED_SAMPLES_MIN = 10;

interface Observed {
  readonly sum: number;
  readonly count: number;
}

export function peerMetrics({ coordinate, members, peers }: SwimView): readonly Metric[] {
  const { attempts, confirmed, confirmedByAttempt, lastTimeoutMs, removed } = peers;
  const isIn = (status: string) => members.filter((one) => one.confirmed && one.status === status);
  const all = Object.values(removed).reduce((sum, one) => sum + one, 0);
  const byRole = (name: string, help: string, values: Readonly<Partial<Record<Role, number>>>) =>
    labelled("counter", name, { help, label: "role", values: Object.entries(values) });
  return [
    counter("vivaldi_coordinate_updates", "Steps of our coordinate", peers.coordinateUpdates),
    gauge("vivaldi_coordinate_error", "Relative error of our coordinate", coordinate.error),
    ...observed(
      "vivaldi_prediction_error",
      "Milliseconds between estimate and measurement",
      peers.predictionErrorMs,
    ),
    ...Object.entries(removed).map(([role, count]) =>
      counter(`unconfirmed_peers_removed_${role}`, `Of role ${role}, never reached`, count),
    ),
    byRole("confirmation_attempts_total", "Pings after the passive wait", attempts),
    counter(
      "confirmation_attempts_success",
      "Members reached after such a ping",
      confirmedByAttempt,
    ),
    {
      ...{ name: "hyperscale_unconfirmed_cleanup_total", type: "counter" },
      help: "Members dropped without having been reached",
      samples: Object.entries(removed).map(([role, value]) => ({
        labels: { role, reason: "never_reached" },
        value,
      })),
    },
    gauge(
      "peers_unconfirmed",
      "Heard of and never reached",
      members.filter((one) => !one.confirmed).length,
    ),
    gauge("peers_alive", "Reached, and alive", isIn("alive").length),
    gauge("peers_suspect", "Reached, and suspected", isIn("suspect").length),
    gauge("peers_dead", "Reached, and dead", isIn("dead").length),
    counter("transitions_unconfirmed_to_alive", "Reached for the first time", confirmed),
    counter("transitions_unconfirmed_to_removed", "Dropped without having been reached", all),
    ...observed(
      "adaptive_timeout_applied",
      "Milliseconds that suspicions may last",
      peers.timeoutMs,
    ),
    ...observed(
      "latency_multiplier",
      "What distance stretched suspicions by",
      peers.latencyMultiplier,
    ),
    ...observed("load_multiplier", "What our health stretched them by", peers.loadMultiplier),
    labelled("gauge", "adaptive_timeout_seconds", {
      help: "Of the last suspicion of a member of this role, at most",
      label: "role",
      values: Object.entries(lastTimeoutMs).map(([role, ms]) => [role, ms / 1_000] as const),
    }),
  ];
}

/** Sum and count, of which rates give means. */
function observed(name: string, help: string, { count, sum }: Observed): readonly Metric[] {
  return [
    counter(`${name}_sum`, `${help}, added up`, sum),
    counter(`${name}_count`, `How often: ${help}`, count),
  ];
}

interface PeerLook {
  readonly process: { readonly swim: Swim | null };
  view(): SwimView;
}

export function coordinateView(look: PeerLook): unknown {
  const { coordinate, members } = look.view();
  const { error, errorMs, height, position, sampleCount } = coordinate;
  const isConverged = error <= CONVERGED_ERROR_MAX && sampleCount >= CONVERGED_SAMPLES_MIN;
  return {
    ...{ position, height, error, error_ms: errorMs, sample_count: sampleCount },
    peer_count: members.filter((one) => one.rttEstimateMs !== null).length,
    convergence_status: isConverged ? "converged" : "converging",
  };
}

export function peersView(look: PeerLook): unknown {
  return others(look).map(({ id, rttEstimateMs, rttMs, rttSamplesMs }) => ({
    peer: id,
    estimated_rtt_ms: rttEstimateMs,
    measured_rtt_samples: rttSamplesMs,
    prediction_error_ms:
      rttEstimateMs === null || rttMs === null ? null : Math.abs(rttEstimateMs - rttMs),
    adaptive_timeout_s: (look.process.swim?.waits(id)?.suspicionMs ?? 0) / 1_000,
  }));
}

export function unconfirmedView(look: PeerLook, wall: number): unknown {
  return others(look)
    .filter(({ confirmed }) => !confirmed)
    .map(({ ageMs, confirmAttempts, id, record }) => {
      const { attemptMs = null, passiveMs = 0 } = look.process.swim?.waits(id) ?? {};
      return {
        ...{ peer: id, role: record.role },
        discovered_at: new Date(wall - ageMs).toISOString(),
        age_seconds: ageMs / 1_000,
        passive_timeout_remaining: passiveMs / 1_000,
        confirmation_attempts: confirmAttempts,
        next_attempt_in: attemptMs === null ? null : attemptMs / 1_000,
      };
    });
}

function others(look: PeerLook): readonly MemberView[] {
  const { members, self } = look.view();
  return members.filter(({ id }) => id !== self.id);
}
