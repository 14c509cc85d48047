/** Styles are bundled by esbuild; an import has an effect and no value. */
declare module "*.css";
