import * as f from "../http2/frames.ts";
import { describeContract } from "../testing/contract.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { GrpcTarget } from "./target.ts";
import { listenFrames, SHOP_PROTO, startShop } from "./testing/server.ts";

function frame(type: number, flags: number, payload: Uint8Array, stream = 1): Buffer {
  const bytes = f.frame(type, flags, stream, payload.length);
  bytes.set(payload, f.FRAME_HEAD_BYTES);
  return bytes;
}

function field(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);
}

const STATUS_200 = Buffer.from([0x88]);
const HEAD = frame(
  f.HEADERS,
  f.END_HEADERS,
  Buffer.concat([STATUS_200, field("content-type", "application/grpc")]),
);
const END = f.END_HEADERS | f.END_STREAM;
const data = (...bytes: readonly number[]): Buffer => frame(f.DATA, 0, Buffer.from(bytes));
const trailers = (status: string): Buffer => frame(f.HEADERS, END, field("grpc-status", status));

describeContract({
  name: "grpc",
  calls: (port) => {
    const target = new GrpcTarget(`grpc://127.0.0.1:${port}`, { proto: SHOP_PROTO });
    return {
      success: target.unary("shop.Catalog/GetItem", { id: 7 }),
      refused: { call: target.unary("shop.Catalog/GetItem", { id: 404 }), code: "NOT_FOUND" },
    };
  },
  real: { start: () => startShop(), absent: "", users: 500 },
  hostile: {
    listen: listenFrames,
    mute: () => listenTcp(() => undefined),
    resets: true,
    half: Buffer.concat([HEAD, data(0, 0, 0, 0, 9, 1)]),
    rubbish: [
      Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"),
      frame(f.HEADERS, END, STATUS_200),
      Buffer.concat([HEAD, frame(f.HEADERS, END, field("grpc-status", "fine"))]),
      Buffer.concat([HEAD, trailers("0")]),
      Buffer.concat([HEAD, data(0, 0, 0, 0, 0, 0, 0, 0, 0, 0), trailers("0")]),
      Buffer.concat([HEAD, data(1, 0, 0, 0, 0), trailers("0")]),
      Buffer.concat([HEAD, data(7, 0, 0, 0, 0), trailers("0")]),
      Buffer.concat([HEAD, data(0, 0, 0, 0, 9, 1), trailers("0")]),
      Buffer.concat([HEAD, frame(f.DATA, f.END_STREAM, Buffer.from([0, 0, 0, 0, 0]))]),
      frame(f.HEADERS, END, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff])),
    ],
    oversize: Buffer.concat([HEAD, data(0, 0, 1, 0, 1)]),
  },
});
