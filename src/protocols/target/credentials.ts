/** Whom to log in as. */

interface Credentials {
  /** "" where nobody was named. */
  readonly user: string;
  readonly password: string;
}

/** What the options say has its way over the address (scheme://user:password@host). */
export function credentialsOf(
  url: URL,
  { password, user }: { readonly user?: string; readonly password?: string },
): Credentials {
  return {
    user: user ?? decodeURIComponent(url.username),
    password: password ?? decodeURIComponent(url.password),
  };
}

/** The option's, else the path of the address without its slash. */
export function pathOf(url: URL, option: string | undefined): string {
  return option ?? decodeURIComponent(url.pathname.replace(/^\//, ""));
}
