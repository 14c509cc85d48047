/**
 * Workflows that several datacenters begin and end together. Each prepares its own part and waits; one of them sets up
 * for all. The gate that merges them directs when they begin, with the setup value, and when the load is over
 * everywhere: then the datacenter that has set up tears down.
 *
 *     first    prepared ─▶ set up ─▶ held ── begin ──▶ running ─▶ ended ── over ──▶ torn down
 *     others   prepared ───────────▶ held ── begin ──▶ running ─▶ over
 *
 * `over` before `begin` means that the workflow failed elsewhere: it never begins here.
 */

import type { Problem } from "../job/core-messages.ts";
import type { JointWait, JointWord } from "./phase-types.ts";
import type { Running, RunningWorkflows } from "./running.ts";

interface JointPorts {
  /** Nothing begins while the run is paused. */
  isPaused(): boolean;
  start(name: string, running: Running): void;
  tearDown(name: string, running: Running): void;
  report(name: string, running: Running): void;
  /** Fails a workflow that never begins. */
  fail(name: string, running: Running, problem: Problem): void;
}

const NEVER = Number.POSITIVE_INFINITY;

export class JointWorkflows {
  readonly #running: RunningWorkflows;
  readonly #ports: JointPorts;
  readonly #begins = new Map<string, { readonly value: unknown; readonly at: number }>();
  readonly #over = new Map<string, string | null>();

  constructor(running: RunningWorkflows, ports: JointPorts) {
    this.#running = running;
    this.#ports = ports;
  }

  /** Applies a directive; a repeated one changes nothing. */
  take(word: JointWord, now: number): void {
    const { kind, workflow } = word;
    if (kind === "over" && !this.#over.has(workflow)) this.#over.set(workflow, word.error);
    if (kind === "begin" && !this.#begins.has(workflow))
      this.#begins.set(workflow, { value: word.value, at: now + word.inMs });
    this.goOn(now);
  }

  /** Continues waiting and finished workflows that nothing blocks any more. */
  goOn(now: number): void {
    for (const [name, running] of this.#running) {
      if (running.phase === "held") this.#whenHeld(name, running, now);
      else if (running.phase === "ended") this.ended(name, running);
    }
  }

  /** Makes a workflow wait once it is prepared, and set up where required. */
  hold(name: string, running: Running, now: number): void {
    running.phase = "held";
    this.#whenHeld(name, running, now);
  }

  #whenHeld(name: string, running: Running, now: number): void {
    const { joint } = running.manifest;
    if (this.#ports.isPaused()) return;
    const begin = this.#begins.get(name);
    const isOver = begin === undefined && this.#over.has(name);
    if (joint === undefined) this.#ports.start(name, running);
    else if (isOver)
      this.#endUnbegun(name, running, this.#over.get(name) ?? "it was over elsewhere");
    else if (begin !== undefined && begin.at <= now) {
      if (joint === "other") running.setup = begin.value;
      this.#ports.start(name, running);
    }
  }

  #endUnbegun(name: string, running: Running, error: string): void {
    if (running.manifest.joint === "other") {
      this.#ports.fail(name, running, { message: error, location: null, mistake: false });
      return;
    }
    running.failure = error;
    this.#ports.tearDown(name, running);
  }

  /** Called when the load is over here. */
  ended(name: string, running: Running): void {
    const { joint } = running.manifest;
    if (joint === "other") this.#ports.report(name, running);
    else if (joint === undefined || this.#over.has(name)) this.#ports.tearDown(name, running);
    else running.phase = "ended";
  }

  /** When the next waiting workflow begins. */
  nextDeadline(): number {
    if (this.#ports.isPaused()) return NEVER;
    let next = NEVER;
    for (const [name, { phase }] of this.#running)
      if (phase === "held") next = Math.min(next, this.#begins.get(name)?.at ?? NEVER);
    return next;
  }

  get waits(): readonly JointWait[] {
    const waits: JointWait[] = [];
    for (const [workflow, { manifest, phase, setup: value }] of this.#running) {
      if (manifest.joint === undefined) continue;
      const isOpen = phase === "held" && !this.#begins.has(workflow);
      if (phase === "ended") waits.push({ workflow, for: "over", value: undefined });
      else if (isOpen) waits.push({ workflow, for: "begin", value });
    }
    return waits;
  }
}
