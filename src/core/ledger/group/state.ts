/**
 * A replica's whole state as plain data: durable state, knowledge of this process, and pending work. Plain, so that an
 * explorer can copy it and a checker can inspect it.
 */

import type { NodeId } from "../../base/ids.ts";
import { TAIL_BYTES_MAX } from "./limits.ts";
import type { GroupSnapshot, LogEntry, VsrMessage } from "./messages.ts";
import type { GroupImage, VsrRecord, VsrStatus } from "./types.ts";

/** The primary's view of one other replica in the current view. */
export interface Peer {
  acked: number;
  /** The newest of our own clock readings that it echoed. */
  sentAt: number;
  round: number;
  /** Up to here the gap it reported has been filled again. */
  resentTo: number;
  resentAt: number;
}

export type ViewChangeResponse = Extract<VsrMessage, { kind: "viewChangeResponse" }>;

export interface Candidacy {
  readonly view: number;
  /** Only asking whether it would be granted. */
  probing: boolean;
  replies: Map<NodeId, ViewChangeResponse>;
  /** Replicas that refused because of a promise to the current primary. */
  refusals: Set<NodeId>;
  /** Our own grant is durable from this record on. */
  ticket: number;
  deadline: number;
  resendAt: number;
}

/** A log on its way here: to take over a view with (adopt), or to follow in one (install). */
export interface Transfer {
  readonly purpose: "adopt" | "install";
  readonly source: NodeId;
  readonly view: number;
  /** The source's log must be that of this view. */
  readonly normalView: number;
  snapshot: GroupSnapshot | null;
  /** Above the commit number, or above that snapshot. */
  entries: LogEntry[];
  /** Bytes of snapshot and entries together. */
  bytes: number;
  /** Highest sequence number known to be committed by the source or any other replica. */
  commit: number;
  retryAt: number;
  /** Requests since the last answer. */
  tries: number;
}

interface Held {
  readonly ticket: number;
  readonly to: NodeId;
  readonly message: VsrMessage;
}

interface DurableMark {
  readonly ticket: number;
  readonly seq: number;
  readonly view: number;
}

interface PendingRead {
  readonly token: number;
  seq: number;
  /** -1 until a round was started for it. */
  round: number;
}

export interface Replaced {
  readonly epoch: number;
  readonly members: readonly NodeId[];
}

export interface ReplicaState {
  epoch: number;
  members: readonly NodeId[];
  /** Members that report this replica as replaced, with the epoch since when. */
  replacedSay: Map<NodeId, Replaced>;
  learner: boolean;
  knownView: number;
  lastNormalView: number;
  snapshot: GroupSnapshot | null;
  /** Sequence number of entries[0]. */
  firstSeq: number;
  entries: LogEntry[];
  marked: number;
  markedAt: number;
  /** Why this replica is stopped for good; null when it is not. */
  broken: string | null;

  status: VsrStatus;
  /** Takes operations: primary of `lastNormalView`, with its log durable. */
  acting: boolean;
  /** Replica that installed the current view. */
  primary: NodeId | null;
  commit: number;
  /** Place of the first entry of the primary's own view. */
  startSeq: number;
  flushed: number;
  inFlightBytes: number;
  /** At the primary: the events that are in the log and not committed, with their places. */
  pending: Map<string, number>;
  /** Place of a reconfiguration that nothing may follow; -1 without one. */
  reconfigureSeq: number;
  peers: Map<NodeId, Peer>;

  /** Records handed out and records durable, counted from the start of this process. */
  appended: number;
  durable: number;
  marks: DurableMark[];
  durableSeq: number;
  durableView: number;
  held: Held[];
  /** Become primary once this many records are durable; 0 without such a plan. */
  takeOverAt: number;

  candidacy: Candidacy | null;
  transfer: Transfer | null;
  /** The highest view named in any message received. */
  seenView: number;
  grantedTo: NodeId | null;
  promisedUntil: number;
  electAt: number;
  heartbeatAt: number;
  noticeAt: number;
  /** Nothing is sent and nothing timed until somebody wants something. */
  asleep: boolean;
  /** False: somebody here acts on what time brings, and its silence has to be noticed. */
  mayRest: boolean;
  /** When there was work last, when a primary fell asleep last, and when it was woken. */
  activeAt: number;
  restedAt: number;
  wokenAt: number;
  /** The process is shutting down: the replica runs for no further view. */
  leaving: boolean;
  /** Deadline by which a resigning primary steps down, whatever is in flight; infinite unless asked to resign. */
  giveUpBy: number;
  /** Send time and round of the newest message of the current primary, echoed back to it. */
  echoSentAt: number;
  echoRound: number;

  round: number;
  reads: PendingRead[];
}

const NEVER = Number.POSITIVE_INFINITY;

export function freshState(epoch: number, members: readonly NodeId[]): ReplicaState {
  return {
    epoch,
    members,
    replacedSay: new Map(),
    learner: false,
    knownView: 0,
    lastNormalView: 0,
    snapshot: null,
    firstSeq: 0,
    entries: [],
    marked: -1,
    markedAt: 0,
    broken: null,
    status: "viewChange",
    acting: false,
    primary: null,
    commit: -1,
    startSeq: 0,
    flushed: -1,
    inFlightBytes: 0,
    pending: new Map(),
    reconfigureSeq: -1,
    peers: new Map(),
    appended: 0,
    durable: 0,
    marks: [],
    durableSeq: -1,
    durableView: 0,
    held: [],
    takeOverAt: 0,
    candidacy: null,
    transfer: null,
    seenView: 0,
    grantedTo: null,
    promisedUntil: Number.NEGATIVE_INFINITY,
    electAt: NEVER,
    heartbeatAt: NEVER,
    noticeAt: NEVER,
    asleep: false,
    mayRest: true,
    activeAt: 0,
    restedAt: Number.NEGATIVE_INFINITY,
    wokenAt: -1,
    leaving: false,
    giveUpBy: NEVER,
    echoSentAt: -1,
    echoRound: 0,
    round: 0,
    reads: [],
  };
}

/** A log read back from disk. Nothing is durable "in the present view" before it is installed again. */
export function recoveredState(image: GroupImage): ReplicaState {
  const state = freshState(image.epoch, image.members);
  state.learner = image.learner;
  state.knownView = image.knownView;
  state.lastNormalView = image.lastNormalView;
  state.snapshot = image.snapshot;
  state.firstSeq = image.entries[0]?.seq ?? (image.snapshot?.seq ?? -1) + 1;
  state.entries = [...image.entries];
  state.commit = image.snapshot?.seq ?? -1;
  state.marked = image.commitMark;
  state.broken = image.broken;
  return state;
}

export const EMPTY_IMAGE: GroupImage = {
  epoch: 0,
  members: [],
  learner: false,
  knownView: 0,
  lastNormalView: 0,
  snapshot: null,
  entries: [],
  commitMark: -1,
  broken: null,
};

/** The durable image of a group, folded record by record: a recovering node runs this over its log. */
export class ImageFold {
  #image: GroupImage;
  readonly #entries: LogEntry[];

  constructor(image: GroupImage = EMPTY_IMAGE) {
    this.#image = image;
    this.#entries = [...image.entries];
  }

  get image(): GroupImage {
    return { ...this.#image, entries: this.#entries };
  }

  #truncate(keep: number): void {
    while ((this.#entries.at(-1)?.seq ?? -1) > keep) this.#entries.pop();
  }

  apply(record: VsrRecord): void {
    switch (record.kind) {
      case "entry":
        // A committed entry takes the place of what turned out differently.
        this.#truncate(record.entry.seq - 1);
        this.#entries.push(record.entry);
        return;
      case "promise":
        this.#image = { ...this.#image, knownView: record.view };
        return;
      case "commitMark":
        this.#image = { ...this.#image, commitMark: record.seq };
        return;
      case "broken":
        this.#image = { ...this.#image, broken: record.why };
        return;
      case "epoch": {
        const { epoch, members, learner } = record;
        // A group starts in view 1; a later epoch keeps its views.
        const view = epoch === 1 ? 1 : 0;
        const { knownView, lastNormalView } = this.#image;
        this.#image = {
          ...this.#image,
          epoch,
          members,
          learner,
          knownView: Math.max(knownView, view),
          lastNormalView: Math.max(lastNormalView, view),
        };
        return;
      }
      case "newView": {
        const { epoch, members, view, keep, snapshot, entries } = record;
        this.#truncate(keep);
        if (snapshot !== null) this.#entries.length = 0;
        this.#entries.push(...entries);
        const base = snapshot ?? this.#image.snapshot;
        const commitMark = Math.max(this.#image.commitMark, snapshot?.seq ?? -1);
        // Committed state may come while a higher view of this epoch is promised already.
        const promised = epoch === this.#image.epoch ? this.#image.knownView : 0;
        const knownView = Math.max(promised, view);
        this.#image = {
          ...this.#image,
          ...{ epoch, members, learner: false, knownView, lastNormalView: view },
          ...{ snapshot: base, commitMark },
        };
      }
    }
  }
}

/** Drops the oldest entries below the snapshot until the remaining ones are small enough. */
export function withinTail(entries: LogEntry[], snapshotSeq: number): LogEntry[] {
  let bytes = 0;
  let from = entries.findIndex(({ seq }) => seq > snapshotSeq);
  if (from < 0) from = entries.length;
  while (from > 0) {
    bytes += entries[from - 1]?.data.length ?? 0;
    if (bytes > TAIL_BYTES_MAX) break;
    from--;
  }
  return entries.slice(from);
}
