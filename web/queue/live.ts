/**
 * Polls the data of a view while the page is visible. A node that does not answer is polled less often; until it
 * answers, the last data stays and is marked as old.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import { errorText } from "../../src/core/base/error-text.ts";
import { ApiError, type NodeLink, nodeLink, onLink } from "./api.ts";

const FAILED_PAUSE_MS_MAX = 5_000;

export interface Polled<Value> {
  readonly value: Value | undefined;
  /** The value belongs to an earlier key: the new answer has not arrived. */
  readonly old: boolean;
  /** Error of the node. */
  readonly problem: string | undefined;
  /** Polls at once. */
  readonly again: () => void;
}

interface Known<Value> {
  readonly key: string;
  readonly value: Value | undefined;
  readonly problem: string | undefined;
}

/** `key` identifies the query: another key is another query. */
export function usePolled<Value>(
  key: string,
  everyMs: number,
  ask: () => Promise<Value>,
): Polled<Value> {
  const [known, setKnown] = useState<Known<Value>>({ key, value: undefined, problem: undefined });
  const [round, setRound] = useState(0);
  const question = useRef(ask);
  question.current = ask;

  useEffect(() => {
    let stopped = false;
    let timer = 0;
    let failures = 0;
    const refresh = async (): Promise<void> => {
      try {
        const value = await question.current();
        failures = 0;
        if (!stopped) setKnown({ key, value, problem: undefined });
      } catch (error) {
        failures++;
        // An unresponsive node is reported once, above the page.
        const problem = error instanceof ApiError ? errorText(error) : undefined;
        if (!stopped) setKnown((before) => ({ ...before, problem }));
      }
      if (!stopped && !document.hidden) timer = window.setTimeout(() => void refresh(), pauseMs());
    };
    const pauseMs = (): number =>
      failures === 0 ? everyMs : Math.min(everyMs * 2 ** (failures - 1), FAILED_PAUSE_MS_MAX);
    const onVisible = (): void => {
      clearTimeout(timer);
      if (!document.hidden) void refresh();
    };
    document.addEventListener("visibilitychange", onVisible);
    void refresh();
    return () => {
      stopped = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [key, everyMs, round]);

  const again = (): void => setRound((before) => before + 1);
  return { value: known.value, old: known.key !== key, problem: known.problem, again };
}

export function useLink(): NodeLink {
  const [link, setLink] = useState(nodeLink);
  useEffect(() => onLink(setLink), []);
  return link;
}

/** Redraws periodically, for times relative to now. */
export function useBeat(everyMs: number): void {
  const [, setBeat] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setBeat((beat) => beat + 1), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
}
