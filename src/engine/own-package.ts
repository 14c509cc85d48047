/** How a bundle that travels names this package: whoever lays it out puts the address of its own in. */
export const OWN_PACKAGE = "hyperscale-package:index";
