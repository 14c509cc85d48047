/** Authenticated encryption as a port, so that the pure sealing layout can run in the simulator. */

export interface Aead {
  /**
   * Fills the packet behind its head: the ciphertext, then a 16-byte tag. The head stays in the clear and is
   * authenticated with the rest. The nonce is read before the call returns.
   */
  seal(
    key: Uint8Array,
    nonce: Uint8Array,
    packet: Uint8Array,
    headBytes: number,
    plain: Uint8Array,
  ): void;
  /** Returns the plaintext behind the head, or null when anything does not match. */
  open(
    key: Uint8Array,
    nonce: Uint8Array,
    packet: Uint8Array,
    headBytes: number,
  ): Uint8Array | null;
  /** Derives a key of `length` bytes (HKDF-SHA-256). */
  derive(secret: Uint8Array, salt: Uint8Array, info: Uint8Array, length: number): Uint8Array;
}
