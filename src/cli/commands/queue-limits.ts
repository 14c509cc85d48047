/** `queue limits`, `queue pause` and `queue resume`: named queues and their limits. */

import { type Command, InvalidArgumentError } from "commander";
import { headedTable } from "../../core/base/text-table.ts";
import type { Backoff, QueueInfo } from "../../queue/index.ts";
import { add, line, parseBackoff, parseWhole, print, run, type Shared } from "./queue-command.ts";

type Rate = NonNullable<QueueInfo["rate"]>;

interface LimitFlags extends Shared {
  readonly concurrency?: number;
  readonly rate?: Rate;
  readonly backoff?: Backoff;
  readonly clear?: true;
}

export function registerLimits(queue: Command): void {
  add(queue, "limits", "limits of named queues: show all, or set those of one", "[queue]")
    .option("--concurrency <n>", "tasks that may run at once, over all nodes", parseWhole)
    .option("--rate <n/time>", "starts per time, e.g. 10/s or 100/m", parseRate)
    .option("--backoff <rule>", "waits after failures: linear,base=5s,cap=2m", parseBackoff)
    .option("--clear", "take concurrency, rate and back-off away")
    .action(
      run(async (client, flags: LimitFlags, name?: string) => {
        if (name !== undefined) {
          const none = flags.clear === true ? { concurrency: null, rate: null, backoff: null } : {};
          const concurrency =
            flags.concurrency === undefined ? {} : { concurrency: flags.concurrency };
          const rate = flags.rate === undefined ? {} : { rate: flags.rate };
          const backoff = flags.backoff === undefined ? {} : { backoff: flags.backoff };
          const limits = { ...none, ...concurrency, ...rate, ...backoff };
          if (Object.keys(limits).length > 0) await client.limitQueue(name, limits);
        }
        const queues = (await client.queues()).filter(
          ({ queue: one }) => name === undefined || one === name,
        );
        if (flags.json) return print(queues);
        if (queues.length === 0) return line("no limits");
        line(headedTable(["queue", "state", "concurrency", "rate", "back-off"], queues.map(rowOf)));
      }),
    );
  add(queue, "pause", "hand out no more tasks of a queue", "<queue>").action(
    run(async (client, flags: Shared, one: string) => {
      await client.limitQueue(one, { paused: true });
      if (flags.json) print({ queue: one, paused: true });
      else line(`queue ${one} is paused; what runs goes on`);
    }),
  );
  add(queue, "resume", "hand out tasks of a queue again", "<queue>").action(
    run(async (client, flags: Shared, one: string) => {
      const paused = (await client.queues()).filter((it) => it.paused).map((it) => it.queue);
      const wasPaused = paused.includes(one);
      if (wasPaused) await client.limitQueue(one, { paused: false });
      if (flags.json) return print({ queue: one, paused: false, was_paused: wasPaused });
      if (wasPaused) return line(`queue ${one} goes on`);
      line(`queue ${one} was not paused; paused: ${paused.join(", ") || "none"}`);
    }),
  );
}

function rowOf({ queue, paused, concurrency, rate, backoff }: QueueInfo): string[] {
  const pace = rate === null ? "" : `${rate.count} in ${rate.seconds} s`;
  return [queue, paused ? "paused" : "open", String(concurrency ?? ""), pace, backoffText(backoff)];
}

function backoffText(backoff: Backoff | null): string {
  const { kind = "exponential", ...rest } = backoff ?? {};
  const parts = Object.entries(rest).map(([name, value]) => `${name}=${value}`);
  return backoff === null ? "" : [kind, ...parts].join(",");
}

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 };

function parseRate(text: string): Rate {
  const [, count, unit = ""] = /^(\d{1,6})\/([smh])$/.exec(text) ?? [];
  const seconds = SECONDS[unit];
  if (count === undefined || seconds === undefined)
    throw new InvalidArgumentError("write a number per second, minute or hour: 10/s, 100/m");
  return { count: Number(count), seconds };
}
