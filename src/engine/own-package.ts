/** Name of this package in a portable bundle; the unpacking side replaces it with the address of its own. */
export const OWN_PACKAGE = "hyperscale-package:index";
