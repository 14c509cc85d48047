/** Exports of HTTP that are common to all versions: the parts of requests, and the response. */

export type { BodyValue, FormValues } from "./body.ts";
export type { ConnectionOptions, UserCertificate } from "./connection-options.ts";
export { file } from "./file-part.ts";
export type { HtmlElement } from "./html.ts";
export { auth, cookies, data, headers, params, url } from "./parts.ts";
export type { RequestOptions } from "./request.ts";
export { HttpResponse } from "./response.ts";
export { type RoutePart, route } from "./route-part.ts";
export type { HttpTarget, TargetOptions } from "./target.ts";
export type { TypedHttpTarget } from "./typed-target.ts";
