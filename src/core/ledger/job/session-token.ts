/**
 * Session token that a client carries between nodes to read its own writes and never go back in time. It records the
 * highest index the client has seen per job. A read with a token is answered by a replica that has reached that index,
 * or by the primary. (SESS-1..3)
 *
 * The token is bounded. It cannot vouch for jobs it has evicted, so from then on unknown jobs are read strongly.
 * (SESS-2)
 */

/** Jobs that one token knows; the most recently used ones. */
const SESSION_JOBS_MAX = 1_024;
const VERSION = "1";
const LETS_GO = "!";

interface SessionRead {
  readonly level: "SESSION" | "STRONG";
  readonly minSeq: number;
}

export class SessionToken {
  /** By job, the one used last at the end. */
  readonly #places = new Map<string, number>();
  /** Some job was let go of. */
  #letsGo = false;

  /** Null for what no token writes. */
  static parse(text: string): SessionToken | null {
    const [version, mark, ...places] = text.trim().split(" ");
    if (version !== VERSION || (mark !== LETS_GO && mark !== "-")) return null;
    const token = new SessionToken();
    for (const place of places) {
      const at = place.lastIndexOf("=");
      const seq = Number(place.slice(at + 1));
      if (at < 1 || !Number.isSafeInteger(seq) || seq < 0) return null;
      token.saw(place.slice(0, at), seq);
    }
    token.#letsGo ||= mark === LETS_GO;
    return token;
  }

  toText(): string {
    const places = [...this.#places].map(([jobId, seq]) => `${jobId}=${seq}`);
    return [VERSION, this.#letsGo ? LETS_GO : "-", ...places].join(" ");
  }

  /** Records an index from an answer: a write committed there, or a state read up to there. */
  saw(jobId: string, seq: number): void {
    const known = this.#places.get(jobId) ?? -1;
    if (seq < 0) return;
    this.#places.delete(jobId);
    this.#places.set(jobId, Math.max(known, seq));
    if (this.#places.size <= SESSION_JOBS_MAX) return;
    const [oldest] = this.#places.keys();
    if (oldest !== undefined) this.#places.delete(oldest);
    this.#letsGo = true;
  }

  /** The highest place this client knows of; -1: none. */
  placeOf(jobId: string): number {
    return this.#places.get(jobId) ?? -1;
  }

  /** How a job must be read so that nothing goes back. */
  need(jobId: string): SessionRead {
    const minSeq = this.placeOf(jobId);
    return { level: minSeq < 0 && this.#letsGo ? "STRONG" : "SESSION", minSeq };
  }
}
