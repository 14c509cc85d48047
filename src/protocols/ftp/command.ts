/** Commands for an FTP server and the values they return. */

export type FtpCommand =
  | { readonly kind: "list"; readonly path: string }
  | {
      readonly kind: "upload";
      readonly path: string;
      readonly content: Buffer;
      /** Appends to an existing file. */
      readonly append: boolean;
    }
  | { readonly kind: "download"; readonly path: string }
  | { readonly kind: "size"; readonly path: string }
  | { readonly kind: "remove"; readonly path: string }
  | { readonly kind: "rename"; readonly path: string; readonly to: string }
  | { readonly kind: "mkdir"; readonly path: string }
  | { readonly kind: "noop" };

export interface FtpEntry {
  readonly name: string;
  readonly bytes: number;
  readonly isFolder: boolean;
}
