/** What is asked of an SSH server, and what it answers. */

export type SshCommand =
  | {
      readonly kind: "exec";
      readonly command: string;
      readonly input: Buffer;
      /** Exit codes that are no failure. */
      readonly codes: readonly number[];
    }
  | { readonly kind: "put"; readonly path: string; readonly content: Buffer }
  | { readonly kind: "get"; readonly path: string }
  | { readonly kind: "list"; readonly path: string }
  | { readonly kind: "remove"; readonly path: string }
  | { readonly kind: "mkdir"; readonly path: string }
  | { readonly kind: "open" };

export interface ExecResult {
  /** Of the program; null where a signal ended it. */
  readonly code: number | null;
  readonly signal: string;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

export interface SftpEntry {
  readonly name: string;
  readonly bytes: number;
  readonly isFolder: boolean;
}
