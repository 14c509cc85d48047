/** Public exports of "hyperscalejs" for workflow files. */

export { type Duration, formatDuration, parseDuration } from "./core/base/duration.ts";
export { stairs } from "./core/load/plan/stairs.ts";
export {
  type RunSummary,
  type StepSummary,
  SUMMARY_SCHEMA,
  type WorkflowSummary,
} from "./core/load/results/model.ts";
export { type OnceCall, type OnceOptions, type OnceResult, once } from "./engine/once.ts";
export {
  type GraphqlClient,
  type GraphqlConnection,
  type GraphqlConnectOptions,
  type GraphqlError,
  type GraphqlOptions,
  GraphqlRequest,
  GraphqlResponse,
  type GraphqlTarget,
  type GraphqlTargetOptions,
  graphql,
  type NextOptions,
  type SubscribeOptions,
  type Subscription,
  type SubscriptionMessage,
  type TypedDocument,
} from "./protocols/graphql/index.ts";
export {
  auth,
  type BodyValue,
  type ConnectionOptions,
  cookies,
  data,
  type FormValues,
  file,
  type HtmlElement,
  HttpResponse,
  type HttpTarget,
  headers,
  params,
  type RequestOptions,
  type RoutePart,
  route,
  type TargetOptions,
  type TypedHttpTarget,
  type UserCertificate,
  url,
} from "./protocols/http/index.ts";
export { HttpClient, HttpRequest, http } from "./protocols/http1/index.ts";
export { type Http2Client, Http2Request, Http2Response, http2 } from "./protocols/http2/index.ts";
export {
  type CallRecord,
  CallResult,
  type CannedAnswer,
  ERROR_KINDS,
  type ErrorKind,
  type PreparedCall,
} from "./protocols/protocol.ts";
export {
  type ConnectOptions,
  type ExchangeOptions,
  type SocketWaitOptions,
  type TargetConnectOptions,
  type WaitOptions,
  type WebsocketClient,
  type WebsocketConnection,
  WebsocketExchange,
  type WebsocketMessage,
  WebsocketResponse,
  type WebsocketSocket,
  type WebsocketTarget,
  websocket,
  ws,
} from "./protocols/websocket/index.ts";
export type { Frame, Point, Reporter, RunInfo } from "./reporters/reporter.ts";
export { type Run, type RunEvent, run } from "./runner/api.ts";
export { RunError } from "./runner/errors.ts";
export type { RunOptions } from "./runner/run-options.ts";
export type { SetupContext, StepContext } from "./workflow/context.ts";
export { CustomResult, measure } from "./workflow/custom-result.ts";
export { DefinitionError } from "./workflow/errors.ts";
export { type CsvRow, Feed, type FileRow, feed } from "./workflow/feed.ts";
export { Flow, type FlowOptions, flow, type WeightedFlow } from "./workflow/flow.ts";
export type {
  CallingContext,
  FlowContext,
  FlowStepOptions,
  PollOptions,
  UserSetupContext,
} from "./workflow/flow-context.ts";
export { counter, gauge, type Metric, rate, trend } from "./workflow/metrics.ts";
export { Mix, type MixOptions, mix } from "./workflow/mix.ts";
export type { WorkflowOptions } from "./workflow/options.ts";
export { shared } from "./workflow/shared.ts";
export type { ThresholdOption } from "./workflow/threshold-types.ts";
export { Workflow, workflow } from "./workflow/workflow.ts";
