/** Sampled calls in a file, one JSON line each: a share of them, within bounds; dropped ones are counted. */

import { DEADLINE, deadlineOf, defineReporter } from "../definition.ts";
import { Delivery } from "../pipeline/delivery.ts";
import { ReporterError } from "../settings.ts";
import { appending, writable } from "./appending.ts";

/** Caps a day of full sampling before the disk fills up. */
const FILE_BYTES_MAX = 1_024 ** 3;

export const samples = defineReporter(
  {
    name: "samples",
    about: "single calls as lines of JSON, a share of them; --samples FILE says the same",
    target: "calls.ndjson",
    settings: {
      share: { kind: "text", about: "of all calls, above 0 and up to 1", default: "0.01" },
      deadline: DEADLINE,
    },
    evidence: "golden files",
    testedWith: "a run whose every call is sampled",
  },
  ({ onProblem, scrub, settings: { deadline, share }, target }) => {
    const sampledShare = Number(share);
    if (!(sampledShare > 0 && sampledShare <= 1))
      throw new ReporterError("report samples: share is a number above 0 and up to 1");
    const delivery = new Delivery({
      ...{ transport: appending("samples", target), joins: true, scrub, onProblem },
      closeMs: deadlineOf(deadline, "samples"),
    });
    let bytes = 0;
    return {
      sampledShare,
      start: () => writable("samples", target),
      calls: ({ calls, dropped, text }) => {
        delivery.leftOut(
          dropped,
          "more calls were chosen than are kept (5,000 a second of a core)",
        );
        const body = Buffer.from(text);
        bytes += body.length;
        if (bytes > FILE_BYTES_MAX) delivery.leftOut(calls, "the file has reached 1 GiB");
        else delivery.offer({ body, points: calls });
      },
      finish: async () => {},
      close: () => delivery.close(),
      counts: () => delivery.counts(),
    };
  },
);
