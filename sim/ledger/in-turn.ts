/**
 * Order in which a process handles its inputs: connections take turns; timers and everything else have a turn of their
 * own.
 */

import type { GateProcessInput } from "../../src/core/cluster/node/gate-process.ts";
import { type Cpu, compute } from "../kernel/cpu.ts";

/** No connection has this number. */
const TIMERS = 0;
/** Connections of a gate to datacenters are numbered by themselves. */
const OTHER_NUMBERS = 0.5;

/** Without a CPU nothing costs time: at once. */
export function inTurn(cpu: Cpu | undefined, input: GateProcessInput, take: () => void): void {
  compute(cpu, connectionOf(input), take);
}

function connectionOf(input: GateProcessInput): number {
  if (input.kind === "ofDatacenter") return input.input.stream + OTHER_NUMBERS;
  return "stream" in input ? input.stream : TIMERS;
}

/** However often it is due: a process has one timer, and comes to it once when its core is free. */
export class TickTurn {
  /** Incarnation of the process whose tick waits; 0: none. */
  #waits = 0;

  due(cpu: Cpu | undefined, life: number, take: () => void): void {
    if (this.#waits === life) return;
    this.#waits = life;
    inTurn(cpu, { kind: "tick" }, () => {
      if (this.#waits === life) this.#waits = 0;
      take();
    });
  }
}
