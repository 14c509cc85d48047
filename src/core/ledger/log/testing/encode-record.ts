import { encodeRecordInto, recordBytes, viewOf, type WalRecord } from "../record.ts";

/** The bytes of one record alone. */
export function encodeWalRecord(record: WalRecord): Uint8Array {
  const bytes = new Uint8Array(recordBytes(record.payload.length));
  encodeRecordInto({ bytes, view: viewOf(bytes) }, 0, record);
  return bytes;
}
