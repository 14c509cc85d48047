/** The order of the page: verdict, warnings, figures, thresholds, time, workflows, details. */

import { useState } from "preact/hooks";
import type { RunSummary } from "../../src/core/run/results/model.ts";
import { Errors, Generator, RunFacts, Statuses } from "./details.tsx";
import { Events, Headline, Notes, Overview, Thresholds, Verdict, Warnings } from "./overview.tsx";
import { Segments } from "./parts.tsx";
import { type Choice, ThemeContext, useThemeChoice } from "./theme.ts";
import { type Scale, ScaleContext } from "./time-chart.tsx";
import { WorkflowSection } from "./workflow.tsx";

const CHOICES: readonly Choice[] = ["auto", "light", "dark"];

export function Report({ summary }: { readonly summary: RunSummary }) {
  const [theme, choice, choose] = useThemeChoice();
  const [scale, setScale] = useState<Scale>("logarithmic");
  return (
    <ThemeContext.Provider value={theme}>
      <header class="top">
        <span class="brand">
          <Mark />
          Hyperscale
        </span>
        <nav aria-label="Sections">
          <a href="#thresholds">Thresholds</a>
          <a href="#time">Over time</a>
          {summary.workflows.map(({ name }, index) => (
            <a key={name} href={`#workflow-${index}`}>
              {name}
            </a>
          ))}
          <a href="#errors">Errors</a>
          <a href="#generator">Generator</a>
          <a href="#run">Run</a>
        </nav>
        <Segments title="Colours" choices={CHOICES} chosen={choice} choose={choose} />
      </header>
      <ScaleContext.Provider value={scale}>
        <main>
          <Verdict summary={summary} />
          <Warnings summary={summary} />
          <Headline summary={summary} />
          <Events summary={summary} />
          <Notes summary={summary} />
          <Thresholds summary={summary} />
          <Overview summary={summary} scale={scale} setScale={setScale} />
          {summary.workflows.map((workflow, index) => (
            <WorkflowSection key={workflow.name} workflow={workflow} id={`workflow-${index}`} />
          ))}
          <Errors summary={summary} />
          <Statuses summary={summary} />
          <Generator generator={summary.generator} />
          <RunFacts summary={summary} />
        </main>
      </ScaleContext.Provider>
    </ThemeContext.Provider>
  );
}

function Mark() {
  return (
    <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true" class="mark">
      <rect x="1" y="11" width="3" height="6" rx="1" />
      <rect x="5.3" y="8" width="3" height="9" rx="1" />
      <rect x="9.6" y="4.5" width="3" height="12.5" rx="1" />
      <rect x="14" y="1" width="3" height="16" rx="1" />
    </svg>
  );
}
