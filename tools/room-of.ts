/** Which room a file is in, and which machines still wait for their driver. */

import { type NamedRoom, rooms } from "./rooms.ts";

/** Deepest path first, as `roomOf` needs it. */
const byDepth = [...rooms].sort((a, b) => b.path.length - a.path.length);

/** By the folder that the `*` of a room stands for. */
const folders = new Map<string, NamedRoom>();

/** The room a file of src/ belongs to, the deepest one first; undefined outside src/. */
export function roomOf(file: string): NamedRoom | undefined {
  if (!file.startsWith("src/")) return undefined;
  for (const room of byDepth) {
    const pattern = new RegExp(`^${room.path.replace("*", "[^/]+")}`);
    const [folder] = pattern.exec(file) ?? [];
    if (folder === undefined) continue;
    if (folder === room.path) return room;
    const known = folders.get(folder) ?? { ...room, path: folder };
    folders.set(folder, known);
    return known;
  }
  throw new Error(`${file} is in no room of tools/rooms.ts`);
}

/** Machines that wait for their driver, with who it will be. Only tests and each other import them. */
const planned: Readonly<Record<string, string>> = {};

export function isPlanned(file: string): boolean {
  return Object.keys(planned).some((path) => file.startsWith(path));
}
