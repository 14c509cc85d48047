/**
 * The Huffman code of HPACK (RFC 7541, appendix B). The code is canonical: it follows from the lengths, and codes of
 * one length are consecutive in the order of their symbols.
 */

/** Code length in bits of each octet, and of the end of a string. */
// biome-ignore format: a table.
const LENGTHS = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
  28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5,
  6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6,
  7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23,
  23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22,
  22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22,
  23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27,
  27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25,
  24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];
const END_OF_STRING = 256;
const WINDOW_BITS = 8;
/** A string is padded with the first bits of its end code, at most this many. */
const PADDING_BITS_MAX = 7;

const CODES = canonicalCodes();
/** Two numbers per node: the successors for bit 0 and bit 1; a negative number is the complement of a symbol. */
const TREE = decodingTree();
/** For every value of the next 8 bits, the short code they begin with: its symbol plus its length times 256; or 0. */
const SHORT = shortCodes();

function canonicalCodes(): readonly number[] {
  const codes: number[] = [];
  const order = LENGTHS.map((_, symbol) => symbol).sort((a, b) => bitsOf(a) - bitsOf(b) || a - b);
  let code = 0;
  let bits = bitsOf(order[0] ?? 0);
  for (const symbol of order) {
    code *= 2 ** (bitsOf(symbol) - bits);
    bits = bitsOf(symbol);
    codes[symbol] = code++;
  }
  return codes;
}

function bitsOf(symbol: number): number {
  return LENGTHS[symbol] ?? 0;
}

function decodingTree(): Int16Array {
  const tree: number[] = [0, 0];
  for (const [symbol, code] of CODES.entries()) {
    let node = 0;
    for (let bit = bitsOf(symbol) - 1; bit >= 0; bit--) {
      const edge = 2 * node + ((code >>> bit) & 1);
      if (bit === 0) tree[edge] = ~symbol;
      else {
        let next = tree[edge] ?? 0;
        if (next === 0) {
          next = tree.length / 2;
          tree.push(0, 0);
          tree[edge] = next;
        }
        node = next;
      }
    }
  }
  return Int16Array.from(tree);
}

function shortCodes(): Uint16Array {
  const short = new Uint16Array(2 ** WINDOW_BITS);
  for (const [symbol, code] of CODES.entries()) {
    const rest = WINDOW_BITS - bitsOf(symbol);
    if (rest < 0) continue;
    short.fill(symbol + bitsOf(symbol) * 256, code << rest, (code + 1) << rest);
  }
  return short;
}

/** A code has at least 5 bits. */
const GROWTH_MAX = 8 / 5;
let scratch = Buffer.allocUnsafe(1024);

/** Decodes bytes[from, end); null when they are malformed. */
export function decodeHuffman(bytes: Buffer, from: number, end: number): string | null {
  const room = Math.ceil((end - from) * GROWTH_MAX);
  if (scratch.length < room) scratch = Buffer.allocUnsafe(room);
  const last = end * 8;
  let at = from * 8;
  let length = 0;
  while (at < last) {
    if (last - at >= WINDOW_BITS) {
      const byte = at >>> 3;
      const two = ((bytes[byte] ?? 0) << 8) | (bytes[byte + 1] ?? 0);
      const short = SHORT[(two >>> (8 - (at & 7))) & 0xff] ?? 0;
      if (short !== 0) {
        scratch[length++] = short & 0xff;
        at += short >>> 8;
        continue;
      }
    }
    const begin = at;
    let node = 0;
    let ones = true;
    do {
      if (at === last) {
        const padded = ones && at - begin <= PADDING_BITS_MAX;
        return padded ? scratch.toString("latin1", 0, length) : null;
      }
      const bit = ((bytes[at >>> 3] ?? 0) >>> (7 - (at & 7))) & 1;
      if (bit === 0) ones = false;
      at++;
      node = TREE[2 * node + bit] ?? 0;
    } while (node > 0);
    if (~node === END_OF_STRING) return null;
    scratch[length++] = ~node;
  }
  return scratch.toString("latin1", 0, length);
}

/** Encoded size of `text`, one octet per character. */
export function huffmanBytes(text: string): number {
  let bits = 0;
  for (let i = 0; i < text.length; i++) bits += bitsOf(text.charCodeAt(i));
  return Math.ceil(bits / 8);
}

/** Appends the code of `text`, one octet per character. */
export function encodeHuffman(text: string, into: number[]): void {
  let pending = 0;
  let bits = 0;
  for (let i = 0; i < text.length; i++) {
    const symbol = text.charCodeAt(i);
    for (let bit = bitsOf(symbol) - 1; bit >= 0; bit--) {
      pending = (pending << 1) | (((CODES[symbol] ?? 0) >>> bit) & 1);
      if (++bits === 8) {
        into.push(pending);
        pending = 0;
        bits = 0;
      }
    }
  }
  if (bits > 0) into.push((pending << (8 - bits)) | (0xff >>> bits));
}
