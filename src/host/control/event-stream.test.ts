/** Event streams to real readers on the loopback. */

import { createServer, type IncomingMessage, request, type Server } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { EventStream, type EventStreamOptions } from "./event-stream.ts";

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

function deferred<Value>() {
  let resolve: (value: Value) => void = () => undefined;
  const promise = new Promise<Value>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

/** Both ends of one stream; the reader reads only on request. */
async function connected(options: EventStreamOptions) {
  const made = deferred<EventStream>();
  server = createServer((_, response) => made.resolve(new EventStream(response, options)));
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  const opened = deferred<IncomingMessage>();
  request({ host: "127.0.0.1", port }, opened.resolve).end();
  return { stream: await made.promise, reader: await opened.promise };
}

describe("a stream of events", () => {
  it("is one line per event", async () => {
    const { stream, reader } = await connected({ format: "lines", backlogBytesMax: 1_000 });
    stream.send("a", '{"n":1}');
    stream.send("b", '{"n":2}');
    stream.end();
    stream.send("late", "{}");
    let text = "";
    for await (const part of reader) text += part;
    expect([text, stream.open]).toEqual(['{"n":1}\n{"n":2}\n', false]);
  });

  it("is server-sent events for pages, with a beat", async () => {
    const options = { format: "server-sent", backlogBytesMax: 1_000, beatMs: 5 } as const;
    const { stream, reader } = await connected(options);
    stream.send("a", '{"n":1}');
    let text = "";
    for await (const part of reader) {
      text += part;
      if (text.includes(": beat") && text.includes("data")) stream.end();
    }
    // On a busy machine a beat may come first.
    const events = text.replaceAll(": beat\n\n", "");
    expect(events).toBe(': following\n\nevent: a\ndata: {"n":1}\n\n');
  });

  it("disconnects a reader that does not read", async () => {
    const { stream, reader } = await connected({ format: "lines", backlogBytesMax: 100_000 });
    reader.on("error", () => undefined);
    const closed = new Promise<void>((resolve) => stream.onClose(resolve));
    // More than the kernel buffers for a reader that does not read.
    const text = "x".repeat(1_000_000);
    for (let at = 0; at < 100 && stream.open; at++) {
      stream.send("a", text);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await closed;
    expect(stream.open).toBe(false);
  });
});
