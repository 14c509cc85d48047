import { HttpResponse } from "../http/response.ts";

/** An answer over HTTP/2; everything else is as with HTTP/1.1. */
export class Http2Response<Body = unknown> extends HttpResponse<Body> {
  override readonly protocol: string = "http2";
}
