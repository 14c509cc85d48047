/**
 * Streams between simulated nodes: one request, one reply, whole or failed. A cut way times out, a
 * process that is down refuses, a paused one answers when it wakes. Requests pass the real codec.
 */

import type { SwimEffect, SwimInput } from "../src/core/swim/face.ts";
import { swimStreamPacket } from "../src/wire/messages/membership.ts";
import { decode, encode } from "../src/wire/schema.ts";
import type { SimNode, Surroundings } from "./node.ts";

/** Bytes of a refusal on the way back. */
const RESET_BYTES = 40;

export function openSimStream(
  from: SimNode,
  effect: Extract<SwimEffect, { kind: "openStream" }>,
  around: Surroundings,
): void {
  const { world, network } = around;
  const { exchange, timeoutMs } = effect;
  const { life } = from;
  const a = from.spec.index;
  let open = true;
  const finish = (name: "streamReply" | "streamFailed", at: number, input: SwimInput): void => {
    world.schedule(at, name, a, () => {
      if (!open) return;
      from.inLife(life, false, () => {
        if (!open) return;
        open = false;
        from.stepSwim(input);
      });
    });
  };
  const failed: SwimInput = { kind: "streamFailed", exchange };
  finish("streamFailed", world.now + timeoutMs / from.rate, failed);
  const target = around.resolve(effect.to);
  if (target === undefined) return;
  const b = target.spec.index;
  const request = encode(swimStreamPacket, effect.packet);
  const arrival = network.stream(a, b, request.length, world.now);
  if (arrival === null) return;
  const respond = (reply: Extract<SwimEffect, { kind: "answerStream" }>): void => {
    const bytes = encode(swimStreamPacket, reply.packet);
    const back = network.stream(b, a, bytes.length, world.now);
    const decoded = decode(swimStreamPacket, bytes);
    if (back === null || !decoded.ok) return;
    finish("streamReply", back, { kind: "streamReply", exchange, packet: decoded.value });
  };
  world.schedule(arrival, "streamRequest", b, () => {
    if (target.state === "down") {
      const back = network.stream(b, a, RESET_BYTES, world.now);
      if (back !== null) finish("streamFailed", back, { ...failed, refused: true });
      return;
    }
    const decoded = decode(swimStreamPacket, request);
    if (!decoded.ok) return;
    target.inLife(target.life, false, () => target.serve(decoded.value, respond));
  });
}
