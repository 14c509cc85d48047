/** What a workflow file imports from "hyperscale". */

export { type Duration, formatDuration, parseDuration } from "./core/base/duration.ts";
export {
  type RunSummary,
  type StepSummary,
  SUMMARY_SCHEMA,
  type WorkflowSummary,
} from "./core/run/results/model.ts";
export { ERROR_KINDS, type ErrorKind } from "./protocols/errors.ts";
export {
  type GraphqlClient,
  type GraphqlOptions,
  GraphqlRequest,
  graphql,
} from "./protocols/graphql/client.ts";
export { type GraphqlError, GraphqlResponse } from "./protocols/graphql/response.ts";
export { auth, cookies, data, file, headers, params, url } from "./protocols/http/parts.ts";
export type { RequestOptions } from "./protocols/http/request.ts";
export { HttpResponse } from "./protocols/http/response.ts";
export { HttpClient, HttpRequest, http } from "./protocols/http1/client.ts";
export { type Http2Client, Http2Request, http2 } from "./protocols/http2/client.ts";
export { Http2Response } from "./protocols/http2/response.ts";
export { type CallRecord, CallResult, type PreparedCall } from "./protocols/protocol.ts";
export {
  type ExchangeOptions,
  type WebsocketClient,
  WebsocketExchange,
  websocket,
} from "./protocols/websocket/client.ts";
export type { WaitOptions, WebsocketMessage } from "./protocols/websocket/message.ts";
export { WebsocketResponse, type WebsocketSocket } from "./protocols/websocket/response.ts";
export type { ConnectOptions } from "./protocols/websocket/target.ts";
export type { SetupContext, StepContext } from "./workflow/context.ts";
export { CustomResult, measure } from "./workflow/custom-result.ts";
export { DefinitionError } from "./workflow/errors.ts";
export { type CsvRow, Feed, feed } from "./workflow/feed.ts";
export { counter, gauge, rate, trend } from "./workflow/metrics.ts";
export type { ThresholdOption, WorkflowOptions } from "./workflow/options.ts";
export { Workflow, workflow } from "./workflow/workflow.ts";
