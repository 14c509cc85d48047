/** Text and bytes are sent unchanged, everything else as JSON. */
export type Payload = string | Uint8Array | object | number | boolean | null;

export function payloadBytes(payload: Payload): Uint8Array {
  if (payload instanceof Uint8Array) return payload;
  const text = typeof payload === "string" ? payload : JSON.stringify(payload);
  if (typeof text !== "string") throw new TypeError("undefined cannot be sent");
  return Buffer.from(text);
}
