/** What a workflow file imports from "hyperscale". */

export { type Duration, formatDuration, parseDuration } from "./core/time/duration.ts";
export { ERROR_KINDS, type ErrorKind } from "./protocols/errors.ts";
export { auth, cookies, data, file, headers, params, url } from "./protocols/http/parts.ts";
export type { RequestOptions } from "./protocols/http/request.ts";
export { HttpResponse } from "./protocols/http/response.ts";
export { HttpClient, HttpRequest, http } from "./protocols/http1/client.ts";
export { type CallRecord, CallResult, type PreparedCall } from "./protocols/protocol.ts";
export {
  type RunSummary,
  type StepSummary,
  SUMMARY_SCHEMA,
  type WorkflowSummary,
} from "./results/model.ts";
export type { SetupContext, StepContext } from "./workflow/context.ts";
export { CustomResult, measure } from "./workflow/custom-result.ts";
export { DefinitionError } from "./workflow/errors.ts";
export { type CsvRow, Feed, feed } from "./workflow/feed.ts";
export { counter, gauge, rate, trend } from "./workflow/metrics.ts";
export type { ThresholdOption, WorkflowOptions } from "./workflow/options.ts";
export { Workflow, workflow } from "./workflow/workflow.ts";
