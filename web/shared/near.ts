/** Lazy drawing: a report of a hundred steps opens at once. */

import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { useTheme } from "./theme.ts";

interface Holder {
  readonly current: HTMLElement | null;
}

/** Becomes true when the element comes near the window, or a print begins. */
export function useNear(holder: Holder): boolean {
  const [near, setNear] = useState(false);
  useEffect(() => {
    const element = holder.current;
    if (element === null) return;
    const show = () => setNear(true);
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) show();
      },
      { rootMargin: "800px" },
    );
    observer.observe(element);
    addEventListener("beforeprint", show);
    return () => {
      observer.disconnect();
      removeEventListener("beforeprint", show);
    };
  }, [holder]);
  return near;
}

/** Measured before each paint after a change of theme, so that paper gets its own width. */
export function useWidth(holder: Holder): number {
  const theme = useTheme();
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = holder.current;
    if (element === null) return;
    const measure = () => setWidth(element.clientWidth);
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, [holder, theme]);
  return width;
}
