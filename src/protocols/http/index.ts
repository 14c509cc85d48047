/** What workflows use of HTTP whatever its version: the parts of requests, and the response. */

export { auth, cookies, data, file, headers, params, url } from "./parts.ts";
export type { RequestOptions } from "./request.ts";
export { HttpResponse } from "./response.ts";
