/** Drawing only what is about to be seen: a report of a hundred steps opens at once. */

import { useEffect, useState } from "preact/hooks";

/** True from the moment the element comes near the window, or a print begins. */
export function useNear(holder: { readonly current: HTMLElement | null }): boolean {
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
