/** Redis: checks the password, and answers every XADD of a list in turn. */

import type { RedisReply } from "../../../protocols/redis/resp.ts";
import { RespReader } from "../../../protocols/redis/resp-reader.ts";
import { SECRET } from "../contract.ts";
import { type OnWrite, type Served, serveSockets } from "./sockets.ts";

const COMMAND_BYTES_MAX = 16 * 1_024 * 1_024;

/** A list of commands is one write: the answer to its first applies to all. */
export function serveRedis(onWrite: OnWrite): Promise<Served> {
  return serveSockets((socket) => {
    let [entered, written] = [false, ""];
    let waiting = 0;
    // A rejected write ends with its connection; the rest of it may still be in flight.
    let isOver = false;
    const answered = (): void => {
      const count = waiting;
      waiting = 0;
      const answer = onWrite(written);
      written = "";
      isOver = answer !== "take";
      if (answer === "hang") return;
      const taken = "$3\r\n1-1\r\n";
      const refused = `-NOPERM no entry for ${SECRET}\r\n`;
      const passing = "-LOADING Redis is loading the dataset in memory\r\n";
      const said = { take: taken, refuse: refused }[answer as "take" | "refuse"] ?? passing;
      socket.write(said.repeat(count));
    };
    const onCommand = (value: RedisReply): void => {
      const words = (value as readonly Buffer[]).map(String);
      const [name] = words;
      if (name === "AUTH") entered = words.at(-1) === SECRET;
      if (name !== "XADD") socket.write(entered ? "+OK\r\n" : "-WRONGPASS\r\n");
      else {
        // A write is identified by its first entry: its end depends on timing.
        written ||= words.join(" ");
        waiting++;
      }
    };
    const reader = new RespReader({ reply: onCommand }, COMMAND_BYTES_MAX);
    let pause: NodeJS.Immediate | undefined;
    socket.on("data", (data: Buffer) => {
      if (isOver) return;
      reader.feed(data, data.length);
      clearImmediate(pause);
      // Entries still in flight belong to the same list.
      pause = setImmediate(() => waiting > 0 && reader.between && answered());
    });
  });
}
