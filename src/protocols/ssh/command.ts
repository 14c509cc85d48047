/** Commands for an SSH server and the values they return. */

export type SshCommand =
  | {
      readonly kind: "exec";
      readonly command: string;
      readonly input: Buffer;
      /** Exit codes that count as success. */
      readonly codes: readonly number[];
    }
  | { readonly kind: "put"; readonly path: string; readonly content: Buffer }
  | { readonly kind: "get"; readonly path: string }
  | { readonly kind: "list"; readonly path: string }
  | { readonly kind: "remove"; readonly path: string }
  | { readonly kind: "mkdir"; readonly path: string }
  | { readonly kind: "open" };

export interface ExecResult {
  /** Exit code of the program; null when a signal terminated it. */
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
