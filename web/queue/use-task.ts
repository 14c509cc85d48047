/** One task and its history, kept up to date by following it; a broken follow is restarted. */

import { useEffect, useState } from "preact/hooks";
import { errorText } from "../../src/core/base/error-text.ts";
import type { Task, TaskAttempt, TaskEvent, TaskFile } from "../../src/queue/api/types.ts";
import { ApiError, call, follow } from "./api.ts";

const FOLLOW_AGAIN_MS = 1_000;

interface Followed {
  readonly task: Task | undefined;
  readonly events: readonly TaskEvent[];
  /** Latest progress value reported while the page was open. */
  readonly progress: unknown;
  readonly attempts: readonly TaskAttempt[];
  readonly files: readonly TaskFile[];
  readonly problem: string | undefined;
}

const NOTHING: Followed = {
  task: undefined,
  events: [],
  progress: undefined,
  attempts: [],
  files: [],
  problem: undefined,
};

export function useTask(id: string) {
  const [known, setKnown] = useState<Followed>(NOTHING);
  const [round, setRound] = useState(0);

  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    const change = (next: (before: Followed) => Partial<Followed>): void => {
      if (!abort.signal.aborted) setKnown((before) => ({ ...before, ...next(before) }));
    };
    const load = async (): Promise<void> => {
      const [task, attempts, files] = await Promise.all([
        call<Task>("get_task", { task_id: id }),
        call<readonly TaskAttempt[]>("task_attempts", { task_id: id }),
        call<readonly TaskFile[]>("task_files", { task_id: id }),
      ]);
      change(() => ({ task, attempts, files, problem: undefined }));
    };
    const hear = (event: string, data: unknown): void => {
      if (event === "transition") {
        const { event_id: eventId } = data as TaskEvent;
        // A restarted follow repeats all events from the beginning.
        change(({ events }) =>
          events.some((one) => one.event_id === eventId)
            ? {}
            : { events: [...events, data as TaskEvent] },
        );
        load().catch(() => undefined);
      } else if (event === "progress") {
        const { message } = data as { readonly message: unknown };
        change(() => ({ progress: message }));
      }
    };
    const watch = async (): Promise<void> => {
      let isOver = false;
      try {
        await load();
        await follow(id, abort.signal, (event, data) => {
          isOver ||= event === "end";
          hear(event, data);
        });
      } catch (error) {
        // A permanent error; an unresponsive node is reported above the page, and is temporary.
        isOver = error instanceof ApiError && error.status !== 401 && error.status < 500;
        if (error instanceof ApiError) change(() => ({ problem: errorText(error) }));
      }
      if (!isOver && !abort.signal.aborted)
        timer = window.setTimeout(() => void watch(), FOLLOW_AGAIN_MS);
    };
    void watch();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [id, round]);

  return { ...known, followAnew: () => setRound((before) => before + 1) };
}
