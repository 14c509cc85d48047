/** User and password of a login. */

interface Credentials {
  /** "" for no login. */
  readonly user: string;
  readonly password: string;
}

/** Options take precedence over the address (scheme://user:password@host). */
export function credentialsOf(
  url: URL,
  { password, user }: { readonly user?: string; readonly password?: string },
): Credentials {
  return {
    user: user ?? decodeURIComponent(url.username),
    password: password ?? decodeURIComponent(url.password),
  };
}

/** Returns the option, else the path of the address without its slash. */
export function pathOf(url: URL, option: string | undefined): string {
  return option ?? decodeURIComponent(url.pathname.replace(/^\//, ""));
}
