/** Parses the URL a person typed, or says what is wrong with it and what was probably meant. */

import { maskCredentials } from "../core/base/mask-credentials.ts";

type TargetUrl =
  | { readonly ok: true; readonly url: URL }
  | { readonly ok: false; readonly problem: string };

export function parseTargetUrl(text: string): TargetUrl {
  const trimmed = text.trim();
  if (trimmed === "") return refuse("the URL is empty; write for example http://127.0.0.1:8089/");
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed)) {
    // "localhost:8080/x" would parse as the scheme "localhost:", hence the check before parsing.
    const rest = trimmed.replace(/^\/+/, "").replace(/^https?:\/*/i, "");
    const scheme = /^https:/i.test(trimmed) || /:443(\/|$)/.test(rest) ? "https" : "http";
    return refuse(`"${text}" has no scheme; did you mean ${scheme}://${rest} ?`);
  }
  if (!URL.canParse(trimmed)) return refuse(`"${text}" is not a URL`);
  const url = new URL(trimmed);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return refuse(`"${text}": only http:// and https:// can be used, not ${url.protocol}//`);
  }
  if (url.port === "0") return refuse(`"${text}": port 0 cannot be connected to`);
  return { ok: true, url };
}

function refuse(problem: string): TargetUrl {
  return { ok: false, problem: maskCredentials(problem) };
}
