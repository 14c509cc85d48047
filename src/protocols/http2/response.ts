import { HttpResponse } from "../http/response.ts";

/** A response over HTTP/2; otherwise the same as with HTTP/1.1. */
export class Http2Response<Body = unknown> extends HttpResponse<Body> {
  override readonly protocol: string = "http2";
}
