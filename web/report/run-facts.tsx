/** Facts of the run: command, place and settings. */

import { formatSeconds } from "../../src/core/load/results/format.ts";
import type { RunSummary } from "../../src/core/load/results/model.ts";
import { Section } from "../shared/parts.tsx";

export function RunFacts({ summary }: { readonly summary: RunSummary }) {
  const { environment } = summary;
  const optional = (name: string, value: string | undefined): [string, string][] =>
    value === undefined ? [] : [[name, value]];
  const facts: [string, string][] = [
    ["Run", summary.name],
    ...optional("Title", summary.title),
    ...Object.entries(summary.tags ?? {}),
    ...optional("Run id", summary.runId),
    ["Command", environment.command],
    ["Started", summary.startedAt],
    ["Duration", formatSeconds(summary.durationSeconds)],
    ["Hyperscale", environment.hyperscale],
    ["Node", environment.node],
    ["Platform", environment.platform],
    [
      "CPU",
      `${environment.cpuModel}, ${environment.cpus} CPUs, ${environment.cores} executor cores`,
    ],
    ["Schema", summary.schema],
  ];
  return (
    <Section id="run" title="Run">
      <dl class="run">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{name === "Command" ? <code>{value}</code> : value}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}
