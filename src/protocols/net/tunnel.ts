/** A tunnel through an HTTP proxy: after CONNECT, the proxy forwards bytes in both directions. RFC 9110 §9.3.6. */

import net from "node:net";
import { connectOptionsOf } from "./open-socket.ts";
import type { Origin } from "./origin.ts";

/** The response to CONNECT is a status line and a few headers. */
const ANSWER_BYTES_MAX = 16 * 1024;

interface TunnelOwner {
  tunnelOpen(socket: net.Socket): void;
  tunnelFailed(error: Error): void;
}

/** Returns the socket to the proxy, so that it can be abandoned; the owner is notified once. */
export function openTunnel(origin: Origin, owner: TunnelOwner): net.Socket {
  const socket = net.connect(connectOptionsOf(origin));
  let answer = Buffer.alloc(0);
  const fail = (error: Error): void => {
    leave();
    socket.destroy();
    owner.tunnelFailed(error);
  };
  const onData = (piece: Buffer): void => {
    answer = Buffer.concat([answer, piece]);
    const problem = problemOf(answer);
    if (problem !== null) fail(refusal(problem));
    else if (answer.includes(HEAD_END)) {
      leave();
      const early = answer.subarray(answer.indexOf(HEAD_END) + HEAD_END.length);
      if (early.length > 0) {
        // HTTP/2 servers speak first: keep their bytes in the socket for its next owner.
        socket.pause();
        socket.unshift(early);
      }
      owner.tunnelOpen(socket);
    }
  };
  const onError = (error: Error): void => fail(error);
  const onClose = (): void => fail(refusal("by closing the connection"));
  const leave = (): void => {
    socket.off("data", onData).off("error", onError).off("close", onClose);
    // Keep an error listener until the next owner attaches its own.
    socket.on("error", () => undefined);
  };
  socket.on("connect", () => socket.write(connectRequest(origin)));
  socket.on("data", onData).on("error", onError).on("close", onClose);
  return socket;
}

const HEAD_END = "\r\n\r\n";

/** Null when the response is valid so far. */
function problemOf(answer: Buffer): string | null {
  const end = answer.indexOf(HEAD_END);
  if (end < 0) return answer.length > ANSWER_BYTES_MAX ? "with too long a head" : null;
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(answer.toString("latin1", 0, end))?.[1];
  if (status === undefined) return "with something that is not HTTP";
  return status.startsWith("2") ? null : `with status ${status}`;
}

function connectRequest(origin: Origin): string {
  const { authority, proxy } = origin;
  const authorization = proxy?.authorization ?? "";
  const line = authorization === "" ? "" : `proxy-authorization: ${authorization}\r\n`;
  return `CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${line}\r\n`;
}

function refusal(how: string): Error {
  return Object.assign(new Error(`the proxy answered CONNECT ${how}`), { code: "EPROXY" });
}
