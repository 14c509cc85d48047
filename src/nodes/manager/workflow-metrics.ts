/** In which state workflows are, as metrics under the names of AD-33b. */

import type { WorkflowStatesView } from "../../core/cluster/manager/workflow-states.ts";
import { type Metric, metricFamily } from "../../host/control/prometheus.ts";

const PREFIX = "hyperscale_workflow_state_";
const { labelled } = metricFamily(PREFIX);

export function workflowMetrics({ counts, transitions }: WorkflowStatesView): readonly Metric[] {
  return [
    labelled("gauge", "count", {
      ...{ help: "Workflows of the jobs that are led here", label: "state", values: counts },
    }),
    {
      ...{ name: `${PREFIX}transitions_total`, type: "counter" },
      help: "Changes of that state",
      samples: [...transitions].map(([change, value]) => {
        const [from = "", to = ""] = change.split(" ");
        return { labels: { from, to }, value };
      }),
    },
  ];
}
