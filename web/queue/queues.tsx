/** Named queues: tasks waiting and running in each, its limits, and whether it is paused. */

import { formatCount } from "../../src/core/load/results/format.ts";
import type { QueueInfo } from "../../src/queue/api/types.ts";
import { Chip } from "../shared/parts.tsx";
import { Table } from "../shared/table.tsx";
import { place } from "./address.ts";
import { call } from "./api.ts";
import { useDeeds } from "./confirm.tsx";
import { usePolled } from "./live.ts";

const QUEUES_EVERY_MS = 2_000;

export function QueuesView() {
  const queues = usePolled("queues", QUEUES_EVERY_MS, () =>
    call<readonly QueueInfo[]>("list_queues", {}),
  );
  const { perform } = useDeeds();
  const pause = ({ paused, queue }: QueueInfo): void =>
    perform(async () => {
      await call("put_queue", { queue, paused: !paused });
      queues.again();
      return paused ? `${queue} goes on.` : `${queue} is paused; what runs goes on.`;
    });
  return (
    <>
      <h1 class="page-title">Queues</h1>
      <p class="lead">
        Limits hold over all nodes. They are set with{" "}
        <code>hyperscale queue limits NAME --concurrency 5 --rate 100/m</code>.
      </p>
      {queues.problem !== undefined && <p class="bad-text">{queues.problem}</p>}
      {queues.value === undefined ? (
        <p class="empty">Loading …</p>
      ) : (
        <Table
          caption="Queues"
          stacked
          columns={[
            { title: "Queue" },
            { title: "State" },
            { title: "Queued", numeric: true },
            { title: "Running", numeric: true },
            { title: "At once", numeric: true },
            { title: "Starts", numeric: true },
            { title: "Pause or resume", hidden: true },
          ]}
          rows={queues.value.map((one) => ({
            key: one.queue,
            cells: [
              { text: <a href={place("tasks", { queue: one.queue })}>{one.queue}</a> },
              {
                text: one.paused ? <Chip tone="warn">paused</Chip> : <Chip tone="good">open</Chip>,
              },
              { text: <Tasks of={one} state="QUEUED" count={one.queued} /> },
              { text: <Tasks of={one} state="RUNNING" count={one.running} /> },
              { text: one.concurrency === null ? "no limit" : formatCount(one.concurrency) },
              { text: rateText(one.rate) },
              {
                text: (
                  <button type="button" class="button" onClick={() => pause(one)}>
                    {one.paused ? "Resume" : "Pause"}
                    <span class="hidden"> {one.queue}</span>
                  </button>
                ),
              },
            ],
          }))}
        />
      )}
    </>
  );
}

interface TasksProps {
  readonly of: QueueInfo;
  readonly state: "QUEUED" | "RUNNING";
  readonly count: number;
}

function Tasks({ of: { queue }, state, count }: TasksProps) {
  return <a href={place("tasks", { queue, state })}>{formatCount(count)}</a>;
}

function rateText(rate: QueueInfo["rate"]): string {
  return rate === null ? "no limit" : `${formatCount(rate.count)} in ${rate.seconds} s`;
}
