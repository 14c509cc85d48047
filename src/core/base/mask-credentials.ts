/** Texts that people and files get to see must not carry the passwords of the addresses in them. */

const CREDENTIALS = /([a-z][a-z0-9+.-]{0,31}:\/\/)[^\s/?#"'`]*@/gi;

/** "http://ada:secret@shop.test/" becomes "http://***@shop.test/", wherever it stands in the text. */
export function maskCredentials(text: string): string {
  return text.includes("@") ? text.replace(CREDENTIALS, "$1***@") : text;
}

const SECRET_HEADER =
  /^((?:proxy-)?authorization|(?:set-)?cookie|[\w-]*(?:token|secret|password|api-?key)[\w-]*)\s*:.*$/is;

/** The words of a command line: addresses without credentials, headers that carry secrets without value. */
export function maskedCommand(words: readonly string[]): string {
  return words
    .map((word) => {
      const [flag, value] = /^(--header=)(.+)$/s.exec(word)?.slice(1) ?? ["", word];
      const secret = SECRET_HEADER.exec(value ?? "");
      return secret === null ? maskCredentials(word) : `${flag}${secret[1]}: ***`;
    })
    .join(" ");
}
