/** Log of one attempt, as stored with the task: the last that logged, or the one in the address. */

import type { LogLine, TaskAttempt } from "../../src/queue/api/types.ts";
import { useFragment } from "../shared/fragment.ts";
import { Section } from "../shared/parts.tsx";
import { call } from "./api.ts";
import { usePolled } from "./live.ts";

const LOG_EVERY_MS = 2_000;

interface Props {
  readonly id: string;
  readonly attempts: readonly TaskAttempt[];
}

export function AttemptLog({ id, attempts }: Props) {
  const asked = Number(useFragment().get("attempt"));
  const shown =
    attempts.find((one) => one.attempt_id === asked) ??
    attempts.findLast((one) => one.log_lines > 0 || one.outcome === "running");
  if (shown === undefined) return null;
  return <Lines key={shown.attempt_id} id={id} attempt={shown.attempt_id} />;
}

function Lines({ id, attempt }: { readonly id: string; readonly attempt: number }) {
  const { value = [], problem } = usePolled(`log ${id} ${attempt}`, LOG_EVERY_MS, () =>
    call<readonly LogLine[]>("task_log", { task_id: id, attempt }),
  );
  if (problem !== undefined) return <p class="bad-text">{problem}</p>;
  if (value.length === 0) return null;
  return (
    <Section id="log" title={`Log of attempt ${attempt}`}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard. */}
      <pre class="card log" tabIndex={0}>
        {value.map(({ text, timestamp }) => `${timestamp.slice(11, 23)}  ${text}`).join("\n")}
      </pre>
    </Section>
  );
}
