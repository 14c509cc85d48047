/** Authenticated encryption as a port, so that the pure sealing layout can run in the simulator. */

export interface Aead {
  /** Ciphertext followed by a 16-byte tag. */
  seal(key: Uint8Array, nonce: Uint8Array, aad: Uint8Array, plain: Uint8Array): Uint8Array;
  /** The plaintext, or null when anything does not fit. */
  open(key: Uint8Array, nonce: Uint8Array, aad: Uint8Array, sealed: Uint8Array): Uint8Array | null;
  /** Derives a key of `length` bytes (HKDF-SHA-256). */
  derive(secret: Uint8Array, salt: Uint8Array, info: Uint8Array, length: number): Uint8Array;
}
