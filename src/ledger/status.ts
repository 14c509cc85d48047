/** Status of a node for operators: its groups, its log, its peers, its health. */

import type { NodeId } from "../core/base/ids.ts";
import { describeLedger } from "../core/cluster/node/describe-ledger.ts";
import type { LedgerMachine } from "../core/cluster/node/ledger-machine.ts";
import type { PeerView, ProcessCounts } from "../core/cluster/node/types.ts";
import type { GroupId } from "../core/ledger/group/messages.ts";
import type { LogView } from "../core/ledger/log/log.ts";
import type { LedgerNode } from "../core/ledger/node/node.ts";
import type { LedgerStatus } from "../core/ledger/node/types.ts";
import type { AuditCounts } from "../host/ports/audit.ts";
import { type LedgerConfig, sitesOf } from "./config.ts";
import type { Driver } from "./driver.ts";
import { LOG_QUEUE_ENTRIES_MAX } from "./store.ts";

const GROUPS_LISTED_MAX = 10_000;

export interface HostStatus {
  readonly name: string;
  readonly region: string;
  readonly cluster: string;
  readonly environment: string;
  readonly digest: string;
  readonly nodes: string;
  readonly leaseMs: number;
  readonly encryption: string;
  readonly ledger: LedgerStatus;
  readonly counts: ProcessCounts;
  readonly audit: AuditCounts;
  readonly waiting: number;
  readonly turns: number;
  readonly timerLagMs: number;
  /** Offset of this clock against the peer that is furthest behind; 0 while clocks agree. */
  readonly clockAheadMs: number;
  readonly archivedJobs: number;
  readonly wal: LogView & {
    readonly queueFill: number;
    readonly durableLag: number;
    readonly durableP99Ms: number;
  };
  readonly checkpoints: readonly {
    readonly id: string;
    readonly localLsn: number;
    readonly createdAt: number;
  }[];
  readonly peers: readonly PeerView[];
}

interface GroupView {
  readonly group: string;
  readonly status: string;
  readonly view: number;
  readonly primary: string | null;
  readonly members: readonly string[];
  readonly commit: number;
  readonly last: number;
}

export function hostStatus(parts: {
  readonly config: LedgerConfig;
  readonly driver: Driver;
  readonly machine: LedgerMachine;
  readonly audit: AuditCounts;
}): HostStatus {
  const { config, driver, machine, audit } = parts;
  const { counts, waiting, encryption } = machine;
  const { digest, described } = describeLedger(sitesOf(config), config.node);
  const ledger = machine.node.status();
  const wal = machine.store.view();
  const durableLag = wal.nextLsn - 1 - wal.durableLsn;
  const queueFill = logFillOf(machine);
  return {
    name: config.name,
    region: config.region,
    cluster: config.cluster,
    environment: config.environment,
    digest,
    nodes: described,
    leaseMs: config.node.vsr.leaseMs,
    clockAheadMs: machine.clockAhead?.aheadMs ?? 0,
    encryption,
    ledger,
    counts,
    audit,
    waiting,
    turns: driver.turns,
    timerLagMs: driver.loop.takeLagMs(),
    archivedJobs: machine.store.archive.size,
    wal: { ...wal, queueFill, durableLag, durableP99Ms: machine.undurable.p99Ms },
    checkpoints: machine.store.checkpoints.map(({ id, localLsn, createdAt }) => ({
      id,
      localLsn,
      createdAt,
    })),
    peers: machine.peers(),
  };
}

export function logFillOf({ store }: LedgerMachine): number {
  return Math.min(1, store.view().queueEntries / LOG_QUEUE_ENTRIES_MAX);
}

export function groupViews(node: LedgerNode, wanted: string, limit: number): readonly GroupView[] {
  const views: GroupView[] = [];
  for (const { id, replica } of node.groups.values()) {
    if (views.length >= Math.min(limit, GROUPS_LISTED_MAX)) break;
    if (!id.startsWith(wanted)) continue;
    const { status, view, primaryId, members, commit, lastSeq } = replica.view();
    views.push({ group: id, status, view, primary: primaryId, members, commit, last: lastSeq });
  }
  return views;
}

/** Groups that have this node among their replicas. */
export function groupsOf(node: LedgerNode, member: NodeId): readonly { readonly group: GroupId }[] {
  return [...node.groups.values()]
    .filter(({ replica }) => replica.state.members.includes(member))
    .map(({ id }) => ({ group: id }));
}
