import { MongoClient } from "mongodb";
import { describe, expect, it, onTestFinished } from "vitest";
import { needs } from "../../../test/needs.ts";
import { makeCertificate } from "../../demo/certificate.ts";
import { runExample } from "../testing/example.ts";
import { answersTo } from "../testing/session.ts";
import { Scram } from "./scram.ts";
import { type MongodbOptions, MongodbTarget } from "./target.ts";
import { type MongodbServer, startMongodb, USER } from "./testing/server.ts";

async function started(...options: Parameters<typeof startMongodb>): Promise<MongodbServer> {
  const server = await startMongodb(...options);
  onTestFinished(() => server.stop());
  return server;
}

const REAL_URL = process.env["HYPERSCALE_TEST_MONGODB_URL"] ?? "";
const NO_REAL = "no MongoDB server (HYPERSCALE_TEST_MONGODB_URL names one)";

/** Typical use, on our own server and on a real one. */
async function useAll(url: string, options: MongodbOptions = {}): Promise<void> {
  const db = new MongodbTarget(url, options);
  const items = `hyperscale_${process.pid}_${Date.now()}`;
  const many = Array.from({ length: 250 }, (_, at) => ({ _id: at, kind: "tea", at }));
  const [inserted, clash, all, some, one, none] = await answersTo(
    db.insertMany(items, many),
    db.insertOne(items, { _id: 7 }),
    db.find(items, { kind: "tea" }),
    db.find(items, {}, { limit: 120, batchSize: 50 }),
    db.findOne(items, { _id: 7 }),
    db.findOne(items, { _id: -1 }),
  );
  expect(inserted).toMatchObject({ ok: true, protocol: "mongodb", sent: 1 });
  expect(inserted.value).toEqual({ count: 250, modified: 0 });
  expect(clash).toMatchObject({ errorKind: "application", errorCode: "DuplicateKey" });
  expect(all.value.map(({ at }) => at)).toEqual(many.map(({ at }) => at));
  expect(all.sent).toBeGreaterThan(1);
  expect(some.value).toHaveLength(120);
  expect(one.value).toMatchObject({ at: 7 });
  expect(none.value).toBeNull();
  const [updated, upserted, counted, deleted, left] = await answersTo(
    db.updateMany(items, { kind: "tea" }, { $inc: { at: 1 } }),
    db.updateOne(items, { _id: 1_000 }, { $set: { kind: "coffee" } }, { upsert: true }),
    db.count(items, { kind: "tea" }),
    db.deleteMany(items, { kind: "tea" }),
    db.count(items),
  );
  expect(updated.value).toEqual({ count: 250, modified: 250 });
  expect(upserted.value).toMatchObject({ count: 1 });
  expect([counted.value, deleted.value.count, left.value]).toEqual([250, 250, 1]);
  const [last] = await answersTo(db.deleteOne(items, { _id: 1_000 }));
  expect(last.value.count).toBe(1);
}

describe("a server of our own", () => {
  it("is accepted by the official MongoDB driver", async () => {
    const server = await started({ secured: true });
    const auth = { username: USER.name, password: USER.password };
    const url = `mongodb://127.0.0.1:${server.port}/?directConnection=true`;
    const client = new MongoClient(url, { auth, retryWrites: false });
    onTestFinished(() => client.close());
    const items = client.db("shop").collection<{ _id: number; at: number }>("items");
    await items.insertMany(Array.from({ length: 150 }, (_, at) => ({ _id: at, at })));
    expect((await items.find({}).toArray()).map(({ at }) => at)).toHaveLength(150);
    expect(server.documents("items")).toHaveLength(150);
    await items.updateOne({ _id: 3 }, { $set: { at: -3 } });
    expect(await items.findOne({ _id: 3 })).toEqual({ _id: 3, at: -3 });
    await expect(items.insertOne({ _id: 3, at: 0 })).rejects.toThrow("E11000");
  });

  it("stores, finds, changes and deletes documents", async () => {
    await useAll((await started()).url);
  });

  it("accepts known users and rejects others", async () => {
    const server = await started({ secured: true });
    const { name: user, password } = USER;
    await useAll(server.url, { user, password });
    const [wrong, anonymous] = await answersTo(
      new MongodbTarget(server.url, { user, password: "guess" }).ping(),
      new MongodbTarget(server.url).ping(),
    );
    expect(wrong).toMatchObject({ errorKind: "application", errorCode: "AuthenticationFailed" });
    expect(anonymous).toMatchObject({ errorKind: "application", errorCode: "Unauthorized" });
  });

  it("is trusted over TLS only through the given authority", async () => {
    const { cert, key } = makeCertificate({ hosts: ["127.0.0.1"] });
    const server = await started({ tls: { cert, key } });
    const [trusting, doubting] = await answersTo(
      new MongodbTarget(`${server.url}?tls=true`, { ca: cert }).ping(),
      new MongodbTarget(server.url, { tls: true }).ping(),
    );
    expect(trusting.error).toBeNull();
    expect(trusting.tlsMs).toBeGreaterThan(0);
    expect(doubting.errorKind).toBe("tls");
  });

  it("matches the server's own count in a whole run", async () => {
    const server = await started();
    const steps = await runExample("mongodb.ts", { MONGODB_URL: server.url });
    expect(server.documents("hyperscale_orders")).toHaveLength(steps.get("order")?.ok ?? -1);
  });
});

describe("a real server", needs(REAL_URL !== "", NO_REAL), () => {
  it("stores, finds, changes and deletes documents", () => useAll(REAL_URL));
});

it("computes the proof of RFC 7677 and verifies the server's", () => {
  const scram = new Scram("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO");
  const challenge =
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
  expect(scram.proof(challenge)?.toString()).toMatch(
    /,p=dHzbZapWIk4jUhN\+Ute9ytag9zjfMHgsqmmiz7AndVQ=$/,
  );
  expect(scram.verified("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")).toBe(true);
  expect(scram.verified("v=AAAA")).toBe(false);
  expect(scram.proof("r=another,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")).toBeNull();
  expect(scram.proof(challenge.replace("4096", "1"))).toBeNull();
});

describe("validation", () => {
  const db = new MongodbTarget("mongodb://127.0.0.1/shop");
  it.each([
    ["no collection", () => db.find(""), /is not a collection name/],
    ["no documents", () => db.insertMany("a", []), /1 to 10000 documents/],
    ["no command", () => db.command({}), /a command is a document/],
    ["a replica set", () => new MongodbTarget("mongodb://a/?replicaSet=b"), /not supported/],
  ])("reports at once: %s", (_what, make, text) => {
    expect(make).toThrow(text);
  });
});
