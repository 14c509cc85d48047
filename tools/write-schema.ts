/** Writes docs/summary.schema.json from the decoder of summaries; a test holds the two together. */

import { writeFileSync } from "node:fs";
import { summaryJsonSchema } from "../src/report/schema.ts";

const file = new URL("../docs/summary.schema.json", import.meta.url);
writeFileSync(file, `${JSON.stringify(summaryJsonSchema(), null, 2)}\n`);
