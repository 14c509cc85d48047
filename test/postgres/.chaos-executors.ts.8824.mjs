// test/postgres/chaos-executors.ts

import { defineExecutors } from "file:///work/wt-queue/src/queue/index.ts";
import { setTimeout as sleep } from "node:timers/promises";

var chaos_executors_default = defineExecutors({
  async work(input, context) {
    const { i } = input;
    await sleep(i % 97 === 0 ? 2500 : i % 7);
    if (i % 53 === 0 && context.attempt === 1) throw new Error("the first attempt fails");
    return { attempt: context.attempt };
  },
});

export { chaos_executors_default as default };
//# sourceMappingURL=data:application/json;base64,ewogICJ2ZXJzaW9uIjogMywKICAic291cmNlcyI6IFsiY2hhb3MtZXhlY3V0b3JzLnRzIl0sCiAgInNvdXJjZXNDb250ZW50IjogWyIvKiogV29yayBvZiB0aGUgY2hhb3MgcnVuOiBhIGZldyBtaWxsaXNlY29uZHMsIHNvbWV0aW1lcyBsb25nZXIsIHNvbWV0aW1lcyBmYWlsaW5nOyBhbnN3ZXJzIHdpdGggaXRzIGF0dGVtcHQuICovXG5cbmltcG9ydCB7IHNldFRpbWVvdXQgYXMgc2xlZXAgfSBmcm9tIFwibm9kZTp0aW1lcnMvcHJvbWlzZXNcIjtcbmltcG9ydCB7IGRlZmluZUV4ZWN1dG9ycyB9IGZyb20gXCJoeXBlcnNjYWxlL3F1ZXVlXCI7XG5cbmV4cG9ydCBkZWZhdWx0IGRlZmluZUV4ZWN1dG9ycyh7XG4gIGFzeW5jIHdvcmsoaW5wdXQsIGNvbnRleHQpIHtcbiAgICBjb25zdCB7IGkgfSA9IGlucHV0IGFzIHsgcmVhZG9ubHkgaTogbnVtYmVyIH07XG4gICAgYXdhaXQgc2xlZXAoaSAlIDk3ID09PSAwID8gMl81MDAgOiBpICUgNyk7XG4gICAgaWYgKGkgJSA1MyA9PT0gMCAmJiBjb250ZXh0LmF0dGVtcHQgPT09IDEpIHRocm93IG5ldyBFcnJvcihcInRoZSBmaXJzdCBhdHRlbXB0IGZhaWxzXCIpO1xuICAgIHJldHVybiB7IGF0dGVtcHQ6IGNvbnRleHQuYXR0ZW1wdCB9O1xuICB9LFxufSk7XG4iXSwKICAibWFwcGluZ3MiOiAiO0FBRUEsU0FBUyxjQUFjLGFBQWE7QUFDcEMsU0FBUyx1QkFBdUI7QUFFaEMsSUFBTywwQkFBUSxnQkFBZ0I7QUFBQSxFQUM3QixNQUFNLEtBQUssT0FBTyxTQUFTO0FBQ3pCLFVBQU0sRUFBRSxFQUFFLElBQUk7QUFDZCxVQUFNLE1BQU0sSUFBSSxPQUFPLElBQUksT0FBUSxJQUFJLENBQUM7QUFDeEMsUUFBSSxJQUFJLE9BQU8sS0FBSyxRQUFRLFlBQVksRUFBRyxPQUFNLElBQUksTUFBTSx5QkFBeUI7QUFDcEYsV0FBTyxFQUFFLFNBQVMsUUFBUSxRQUFRO0FBQUEsRUFDcEM7QUFDRixDQUFDOyIsCiAgIm5hbWVzIjogW10KfQo=
