/**
 * The state of a page is its address: `#errors?t=30-41&open=1.2` is the section, the stretch of time,
 * the open cards. A copied link shows a colleague the same, and the browser's "back" goes back.
 */

import { createContext } from "preact";
import { useContext, useEffect, useMemo, useState } from "preact/hooks";

type Changes = Readonly<Record<string, string | null>>;

export interface Fragment {
  readonly section: string;
  get(key: string): string | null;
  /** Null removes a key. Scrolls to the section. */
  set(changes: Changes, section?: string): void;
  /** The address that `set` would lead to. */
  link(changes: Changes, section: string): string;
}

interface Parsed {
  readonly section: string;
  readonly params: URLSearchParams;
}

function parse(): Parsed {
  const [section = "", query = ""] = location.hash.slice(1).split("?");
  return { section: decodeURIComponent(section), params: new URLSearchParams(query) };
}

function format(section: string, params: URLSearchParams): string {
  const query = params.toString();
  return `#${encodeURIComponent(section)}${query === "" ? "" : `?${query}`}`;
}

function changed({ params }: Parsed, changes: Changes): URLSearchParams {
  const next = new URLSearchParams(params);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null) next.delete(key);
    else next.set(key, value);
  }
  next.sort();
  return next;
}

export function useFragmentState(): Fragment {
  const [parsed, setParsed] = useState(parse);
  useEffect(() => {
    const onHash = () => setParsed(parse());
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, []);
  // After the page has drawn what the address asks for.
  useEffect(() => {
    if (parsed.section !== "") document.getElementById(parsed.section)?.scrollIntoView();
  }, [parsed.section]);
  return useMemo(
    () => ({
      section: parsed.section,
      get: (key) => parsed.params.get(key),
      set: (changes, section) => {
        const target = format(section ?? parsed.section, changed(parsed, changes));
        if (section === undefined) {
          // An adjustment, not a place to come back to.
          history.replaceState(null, "", target);
          setParsed(parse());
          return;
        }
        if (location.hash === target) document.getElementById(section)?.scrollIntoView();
        else location.hash = target;
      },
      link: (changes, section) => format(section, changed(parsed, changes)),
    }),
    [parsed],
  );
}

const NOWHERE: Fragment = { section: "", get: () => null, set: () => {}, link: () => "#" };
export const FragmentContext = createContext<Fragment>(NOWHERE);

export function useFragment(): Fragment {
  return useContext(FragmentContext);
}
