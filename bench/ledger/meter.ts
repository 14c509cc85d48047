/** One measurement: how many, how long each took, and the cost on both sides. */

export interface Metered {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** All servers together. */
  readonly cpuUsEach: number;
  readonly clientCpuUsEach: number;
  readonly failures: number;
}

export class Meter {
  readonly #serverCpuMs: () => number;
  #measuring = false;
  #startedAt = 0;
  #serverBefore = 0;
  #clientBefore = process.cpuUsage();
  #done = 0;
  #failures = 0;
  #latencies: number[] = [];

  constructor(serverCpuMs: () => number) {
    this.#serverCpuMs = serverCpuMs;
  }

  start(): void {
    this.#serverBefore = this.#serverCpuMs();
    this.#clientBefore = process.cpuUsage();
    this.#startedAt = performance.now();
    this.#measuring = true;
  }

  note(ok: boolean, sentAt: number): void {
    if (!this.#measuring) return;
    if (!ok) {
      this.#failures++;
      return;
    }
    // Every tenth is plenty for percentiles, and keeps the client lean.
    if (this.#done++ % 10 === 0) this.#latencies.push(performance.now() - sentAt);
  }

  stop(): Metered {
    this.#measuring = false;
    const seconds = (performance.now() - this.#startedAt) / 1_000;
    const cpuMs = this.#serverCpuMs() - this.#serverBefore;
    const client = process.cpuUsage(this.#clientBefore);
    const sorted = this.#latencies.sort((a, b) => a - b);
    const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
    const each = (us: number): number => Number((us / Math.max(1, this.#done)).toFixed(1));
    return {
      perSecond: Math.round(this.#done / seconds),
      p50Ms: Number(at(0.5).toFixed(1)),
      p99Ms: Number(at(0.99).toFixed(1)),
      cpuUsEach: each(cpuMs * 1_000),
      clientCpuUsEach: each(client.user + client.system),
      failures: this.#failures,
    };
  }
}
