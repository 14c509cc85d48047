/** What is asked of an FTP server, and what it answers. */

export type FtpCommand =
  | { readonly kind: "list"; readonly path: string }
  | {
      readonly kind: "upload";
      readonly path: string;
      readonly content: Buffer;
      /** Behind what is there. */
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
