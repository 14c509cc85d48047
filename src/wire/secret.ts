/**
 * Validation of secrets. Keys are derived with HKDF, which does not stretch: a guessable secret is an open cluster, so
 * weak ones are rejected at start. (SEC-3, SEC-4)
 */

const SECRET_CHARACTERS_MIN = 16;
const DISTINCT_MIN = 6;

/**
 * Replaces a secret: no encryption, only a checksum. It rotates like a key, so a cluster moves from plaintext to
 * encryption in the same three steps. The configuration decides whether it is allowed at all.
 */
export const PLAINTEXT = "plaintext";

/** Words in secrets that people leave unchanged. Compared without case, digits and signs. */
const COMMON = [
  "password",
  "passphrase",
  "secret",
  "changeme",
  "default",
  "example",
  "hyperscale",
  "cluster",
  "letmein",
  "qwerty",
  "qwertyuiop",
  "asdfghjkl",
  "admin",
  "administrator",
  "welcome",
  "test",
  "testing",
  "development",
  "production",
  "supersecret",
  "topsecret",
  "mysecret",
  "sharedsecret",
  "correcthorsebatterystaple",
  "abcdefghijklmnop",
  "abcdefghijklmnopqrstuvwxyz",
];

/** Null when the secret may be used, else what is wrong with it and how to get a good one. */
export function weakness(secret: string): string | null {
  const advice = 'make one with "hyperscale keygen"';
  const characters = [...secret];
  if (characters.length < SECRET_CHARACTERS_MIN) {
    return `the secret has ${characters.length} characters; at least ${SECRET_CHARACTERS_MIN} are needed: ${advice}`;
  }
  const distinct = new Set(characters).size;
  if (distinct < DISTINCT_MIN) {
    return `the secret has only ${distinct} different characters: ${advice}`;
  }
  if (hasShortPeriod(secret)) return `the secret repeats a short pattern: ${advice}`;
  if (isRun(characters)) return `the secret is a run of neighbouring characters: ${advice}`;
  if (isMadeOfCommonWords(secret)) return `the secret is made of common words: ${advice}`;
  return null;
}

/** The secrets of a file: one per line, `#` begins a comment. The first seals, the others only open. */
export function parseSecrets(text: string): readonly string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
}

/** Returns the problem of a key ring; `plaintextSwitch` names the setting that would allow plaintext, null when set. */
export function secretsProblem(
  secrets: readonly string[],
  plaintextSwitch: string | null,
): string | null {
  if (secrets.length === 0) return "the secret file holds no secret";
  if (secrets.includes(PLAINTEXT) && plaintextSwitch !== null) {
    return `the secret file says "plaintext": that needs ${plaintextSwitch}`;
  }
  for (const secret of secrets) {
    const problem = secret === PLAINTEXT ? null : weakness(secret);
    if (problem !== null) return problem;
  }
  return null;
}

function hasShortPeriod(secret: string): boolean {
  for (let period = 1; period <= secret.length / 2 && period <= 8; period++) {
    const pattern = secret.slice(0, period);
    if (pattern.repeat(Math.ceil(secret.length / period)).startsWith(secret)) return true;
  }
  return false;
}

/** 0123456789abcdef, zyxwvutsrqponmlk: most steps go to the next or the previous character. */
function isRun(characters: readonly string[]): boolean {
  let neighbours = 0;
  for (let i = 1; i < characters.length; i++) {
    const step = (characters[i]?.codePointAt(0) ?? 0) - (characters[i - 1]?.codePointAt(0) ?? 0);
    if (Math.abs(step) <= 1) neighbours++;
  }
  return neighbours >= (characters.length - 1) * 0.8;
}

/** Splits the letters greedily by the longest known word. The remainder must be long enough. */
function isMadeOfCommonWords(secret: string): boolean {
  let letters = secret.toLowerCase().replace(/[^a-z]/g, "");
  const words = [...COMMON].sort((a, b) => b.length - a.length);
  let removed = 0;
  for (const word of words) {
    while (letters.includes(word)) {
      letters = letters.replace(word, "");
      removed += word.length;
    }
  }
  const rest = [...secret].length - removed;
  return removed > 0 && rest < SECRET_CHARACTERS_MIN / 2;
}
