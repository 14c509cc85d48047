/** Texts that people and files get to see must not carry the passwords of the addresses in them. */

const CREDENTIALS = /([a-z][a-z0-9+.-]{0,31}:\/\/)[^\s/?#"'`]*@/gi;

/** "http://ada:secret@shop.test/" becomes "http://***@shop.test/", anywhere in the text. */
export function maskCredentials(text: string): string {
  return text.includes("@") ? text.replace(CREDENTIALS, "$1***@") : text;
}

const SECRET_NAME =
  "[\\w.-]{0,64}(?:token|secret|passw(?:or)?d|api[-_]?key|authorization|credential|session)[\\w.-]{0,64}";
const SECRET_FIELD = new RegExp(`\\b(${SECRET_NAME})=[^&\\s"';,]*`, "gi");
/** The value may be cut off where a text ends. */
const SECRET_PROPERTY = new RegExp(
  `("${SECRET_NAME}"\\s{0,8}:\\s{0,8})(?:"(?:[^"\\\\]|\\\\.)*(?:"|$)|[^\\s,}\\]]+)`,
  "gi",
);
const SCHEME = /\b(bearer|basic)\s{1,8}[\w.~+/=-]{4,}/gi;

/** Masks secrets in text from or for a target: values with a secret-sounding name are removed. */
export function maskSecrets(text: string): string {
  return maskCredentials(text)
    .replace(SCHEME, "$1 ***")
    .replace(SECRET_PROPERTY, '$1"***"')
    .replace(SECRET_FIELD, "$1=***");
}

const SECRET_HEADER =
  /^((?:proxy-)?authorization|(?:set-)?cookie|[\w-]*(?:token|secret|password|api-?key)[\w-]*)\s*:.*$/is;

const ENV_FLAG = /^(?:-e|--env)$/;
const VARIABLE = /^((?:-e|--env=)[A-Za-z_]\w*=).*$/s;

/** The arguments of a command line without the secrets in its addresses, headers and variables. */
export function maskedCommand(words: readonly string[]): string {
  return words
    .map((word, at) => {
      const variable = VARIABLE.exec(word);
      if (variable !== null) return `${variable[1]}***`;
      if (at > 0 && ENV_FLAG.test(words[at - 1] ?? "")) return word.replace(/=.*$/s, "=***");
      const [flag, value] = /^(--header=)(.+)$/s.exec(word)?.slice(1) ?? ["", word];
      const secret = SECRET_HEADER.exec(value ?? "");
      return secret === null ? maskSecrets(word) : `${flag}${secret[1]}: ***`;
    })
    .join(" ");
}
