/** Light, dark or as the system; remembered where the browser allows storage for files. */

import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";

export type Choice = "auto" | "light" | "dark";
/** Paper is light and as narrow as a page, so that charts are drawn to fit it. */
type Theme = "light" | "dark" | "paper";

const KEY = "hyperscale-report-theme";
const systemDark = matchMedia("(prefers-color-scheme: dark)");

function remembered(): Choice {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto"; // Storage may be denied for files; the choice then lasts for this visit.
  }
}

function remember(choice: Choice): void {
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // As above: nothing depends on it.
  }
}

/** The current theme, the reader's choice, and a setter. */
export function useThemeChoice(): [Theme, Choice, (choice: Choice) => void] {
  const [choice, setChoice] = useState<Choice>(remembered);
  const [system, setSystem] = useState<Theme>(systemDark.matches ? "dark" : "light");
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const onSystem = () => setSystem(systemDark.matches ? "dark" : "light");
    const onPrint = (event: Event) => setPrinting(event.type === "beforeprint");
    systemDark.addEventListener("change", onSystem);
    addEventListener("beforeprint", onPrint);
    addEventListener("afterprint", onPrint);
    return () => {
      systemDark.removeEventListener("change", onSystem);
      removeEventListener("beforeprint", onPrint);
      removeEventListener("afterprint", onPrint);
    };
  }, []);
  const theme = printing ? "paper" : choice === "auto" ? system : choice;
  document.documentElement.dataset["theme"] = theme;
  const choose = (next: Choice) => {
    remember(next);
    setChoice(next);
  };
  return [theme, choice, choose];
}

export const ThemeContext = createContext<Theme>("light");

/** Charts are drawn on a canvas and must be drawn again when this changes. */
export function useTheme(): Theme {
  return useContext(ThemeContext);
}

/** Current value of a custom property, for drawing on a canvas. */
export function cssColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
