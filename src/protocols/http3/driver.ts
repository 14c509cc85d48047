/** Used part of the package `@currentspace/http3`. It is an optional install, so its types are not available here. */

import type { Duplex } from "node:stream";
import { OptionalPackage } from "../target/driver.ts";

export type HeaderFields = Readonly<Record<string, string | readonly string[]>>;

export interface Http3Stream extends Duplex {
  /** Takes an HTTP/3 error code (RFC 9114, section 8.1). */
  close(code?: number): void;
}

export interface Http3Session {
  ready(): Promise<void>;
  request(
    headers: Readonly<Record<string, string>>,
    options: { readonly endStream: boolean },
  ): Http3Stream;
  getMetrics(): { readonly bytesIn: number; readonly bytesOut: number } | null;
  on(event: "error", listener: (error: Error) => void): this;
  on(
    event: "close",
    listener: (info: { readonly errorCode: number; readonly reason: string }) => void,
  ): this;
  destroy(): Promise<void>;
}

interface Http3Package {
  connect(
    authority: string,
    options: {
      readonly ca?: readonly (string | Buffer)[];
      readonly rejectUnauthorized: boolean;
      readonly servername: string;
      readonly maxIdleTimeoutMs: number;
      readonly connectTimeoutMs: number;
    },
  ): Http3Session;
}

export const http3Driver = new OptionalPackage<Http3Package>("@currentspace/http3", "HTTP/3");
