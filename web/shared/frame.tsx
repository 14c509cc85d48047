/** The frame of every page: brand, colours, a rail of sections (a bar at the bottom of a phone). */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useFragment } from "./fragment.ts";
import { Segments } from "./parts.tsx";
import type { Choice } from "./theme.ts";

export interface FrameSection {
  readonly id: string;
  readonly title: string;
  /** Badge beside the title. */
  readonly mark?: string;
  /** Target, when it is not a section of this page. */
  readonly href?: string;
}

interface FrameProps {
  readonly sections: readonly FrameSection[];
  readonly theme: { readonly choice: Choice; readonly choose: (choice: Choice) => void };
  /** The visible section, where only one is shown. */
  readonly current?: string;
  /** Stays at the top while the page scrolls. */
  readonly bar?: ComponentChildren;
  readonly children: ComponentChildren;
}

const CHOICES: readonly Choice[] = ["auto", "light", "dark"];

export function Frame({ bar, children, current: shown, sections, theme }: FrameProps) {
  const { link } = useFragment();
  const scrolledTo = useCurrentSection(sections);
  const current = shown ?? scrolledTo;
  const main = useRef<HTMLElement>(null);
  // The address is the state of the page, not an anchor: focus moves without it.
  const skip = () => main.current?.focus();
  return (
    <>
      <button type="button" class="skip" onClick={skip}>
        Skip to the content
      </button>
      <header class="top">
        <span class="brand">
          <Mark />
          Hyperscale
        </span>
        <div class="top-bar">{bar}</div>
        <Segments title="Colours" choices={CHOICES} chosen={theme.choice} choose={theme.choose} />
      </header>
      <div class="frame">
        <nav class="rail" aria-label="Sections">
          {sections.map(({ href, id, mark, title }) => (
            <a
              key={id}
              href={href ?? link({}, id)}
              aria-current={current === id ? "location" : undefined}
            >
              {title}
              {mark !== undefined && <span class="rail-mark">{mark}</span>}
            </a>
          ))}
        </nav>
        <main tabIndex={-1} ref={main}>
          {children}
        </main>
      </div>
    </>
  );
}

/** The section that is at the top of the window. */
function useCurrentSection(sections: readonly FrameSection[]): string | null {
  const [current, setCurrent] = useState<string | null>(sections[0]?.id ?? null);
  useEffect(() => {
    const look = () => {
      const passed = sections.filter(({ id }) => {
        const top = document.getElementById(id)?.getBoundingClientRect().top;
        return top !== undefined && top < innerHeight / 3;
      });
      setCurrent(passed.at(-1)?.id ?? sections[0]?.id ?? null);
    };
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, [sections]);
  return current;
}

function Mark() {
  return (
    <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true" class="mark">
      <rect x="1" y="11" width="3" height="6" rx="1" />
      <rect x="5.3" y="8" width="3" height="9" rx="1" />
      <rect x="9.6" y="4.5" width="3" height="12.5" rx="1" />
      <rect x="14" y="1" width="3" height="16" rx="1" />
    </svg>
  );
}
