/** Object stores: a third-party S3 server, which keeps objects and does not verify signatures. */

import { decodeSummary } from "../../src/reporters/file/schema.ts";
import { type Case, freshRun, same, send } from "./measure.ts";
import { freePort, npmFolder, own, withFolder } from "./servers.ts";

const throughS3rver = (reporter: "s3" | "gcs"): Case => ({
  ...{ reporter, server: "s3rver 3.7" },
  run: () =>
    withFolder(async (server) => {
      const folder = npmFolder("s3rver", "3.7.1");
      const port = await freePort();
      const base = `http://127.0.0.1:${port}`;
      await server.start(
        own(process.execPath),
        [
          `${folder}/node_modules/s3rver/bin/s3rver.js`,
          ...["-d", server.folder, "-a", "127.0.0.1", "-p", String(port), "--silent"],
          ...["--configure-bucket", "results"],
        ],
        port,
      );
      process.env["REPORTERS_ACCESS_KEY"] = "S3RVER";
      process.env["REPORTERS_SECRET_KEY"] = "S3RVER-secret";
      const run = freshRun();
      const keys = "accessKey=env:REPORTERS_ACCESS_KEY,secretKey=env:REPORTERS_SECRET_KEY";
      await send(`${reporter}=results/nightly,endpoint=${base},${keys}`, run);
      const listed = await (await fetch(`${base}/results?prefix=nightly/`)).text();
      const keyed = [...listed.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => key);
      same("objects", keyed.length, 2);
      const text = await (await fetch(`${base}/results/nightly/${run.runId}/summary.json`)).text();
      const decoded = decodeSummary(text);
      if (!decoded.ok) throw new Error(decoded.problem);
      const { totals } = decoded.summary;
      same("requests", totals?.requests, run.totals?.requests ?? Number.NaN);
      same("p99", totals?.latencyMs.p99, run.totals?.latencyMs.p99 ?? Number.NaN);
      return "both objects listed, and the totals of summary.json";
    }),
});

export const STORES: readonly Case[] = [throughS3rver("s3"), throughS3rver("gcs")];
