// Read a list page by page until there is no next one. How many calls an iteration makes is what the server
// says; all of them are one step, because they are one thing.

import { flow, http } from "hyperscalejs";

const api = http.target(process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8090");

interface Page {
  readonly items: readonly { readonly id: number }[];
  readonly next: string | null;
}

export default flow(
  "pages",
  { vus: 4, iterations: 20, thresholds: ["errors.rate < 1%", "checks.rate == 100%"] },
  async ({ step, check, group }) => {
    const seen = new Set<number>();
    await group("whole list", async () => {
      let next: string | null = "/items?page=1";
      while (next !== null) {
        const page: Page = (await step("page", api.get<Page>(next))).json();
        for (const { id } of page.items) seen.add(id);
        next = page.next;
      }
    });
    check("every item, once", () => seen.size === 25);
  },
);
