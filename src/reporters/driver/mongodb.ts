/** MongoDB: a document per point, by the driver `mongodb`. */

import { createHash } from "node:crypto";
import { loadDriver } from "../../protocols/target/driver.ts";
import { definePush } from "../definition.ts";
import { type PointObject, pointBatches } from "../encoders/point-json.ts";
import { REQUEST_MS_MAX } from "../limits.ts";
import { type Session, SessionTransport } from "../pipeline/session.ts";
import { ReporterError } from "../settings.ts";

const POINTS_MAX = 500;
/** Code for a document whose id exists already: it was sent before. */
const DUPLICATE = 11_000;
/** Errors after which drivers may write again: host unreachable, primary stepping down, server shutting down. */
const PASSING: ReadonlySet<unknown> = new Set([
  ...[6, 7, 89, 91, 189, 262, 9_001, 10_107, 11_600, 11_602, 13_435, 13_436],
]);

export const mongodb = definePush({
  name: "mongodb",
  about: "MongoDB: a document per point, with the package mongodb",
  target: "env:MONGODB_URL",
  settings: {
    database: { kind: "text", about: "instead of the one in the address", optional: true },
    collection: { kind: "text", about: "its collection", default: "hyperscale_points" },
  },
  evidence: "own stub",
  testedWith: "the package mongodb against a stub that speaks its protocol",
  transport: ({ settings: { collection, database }, target }) => {
    if (!/^mongodb(\+srv)?:\/\//.test(target))
      throw new ReporterError("report mongodb: its address must begin with mongodb://");
    return new SessionTransport({
      prepare: async () => void (await driver()),
      open: (signal) => opened({ url: target, database, collection }, signal),
      isRefusal,
    });
  },
  encode: (frame) => pointBatches(frame, POINTS_MAX),
});

type Driver = typeof import("mongodb");

async function driver(): Promise<Driver> {
  const loaded = await loadDriver<Driver & { readonly default?: Driver }>(
    "mongodb",
    "report mongodb",
  );
  return loaded.default ?? loaded;
}

interface Place {
  readonly url: string;
  readonly database: string | undefined;
  readonly collection: string;
}

async function opened({ collection, database, url }: Place, signal: AbortSignal): Promise<Session> {
  const { MongoClient } = await driver();
  const client = new MongoClient(url, {
    appName: "hyperscale",
    maxPoolSize: 1,
    serverSelectionTimeoutMS: REQUEST_MS_MAX,
    connectTimeoutMS: REQUEST_MS_MAX,
    socketTimeoutMS: REQUEST_MS_MAX,
  });
  const destroy = (): void => void client.close(true).catch(() => {});
  signal.addEventListener("abort", destroy, { once: true });
  await client.connect();
  const points = client.db(database).collection<PointDocument>(collection);
  return {
    write: async (body) => {
      const documents = (JSON.parse(body.toString("utf8")) as PointObject[]).map(documentOf);
      try {
        await points.insertMany(documents, { ordered: false });
      } catch (error) {
        if (!isRepetition(error)) throw error;
      }
    },
    close: () => client.close(),
    destroy,
  };
}

type PointDocument = Omit<PointObject, "at"> & { readonly _id: string; readonly at: Date };

/** The id is derived from the content, so that a document sent again is recognised. */
function documentOf(point: PointObject): PointDocument {
  const id = createHash("sha256").update(JSON.stringify(point)).digest("hex");
  return { ...point, _id: id, at: new Date(point.at) };
}

interface ServerError {
  readonly name?: string;
  readonly code?: unknown;
  readonly writeErrors?: { readonly code?: number } | readonly { readonly code?: number }[];
}

function isRepetition(error: unknown): boolean {
  const { writeErrors = [] } = error as ServerError;
  const all = [writeErrors].flat();
  return all.length > 0 && all.every(({ code }) => code === DUPLICATE);
}

/** Only errors reported by the server have a code. */
function isRefusal(error: unknown): boolean {
  const { code, name = "" } = error as ServerError;
  const isAnswer = /^Mongo(Server|BulkWrite|WriteConcern)Error$/.test(name);
  return isAnswer && code !== undefined && !PASSING.has(code);
}
