/** esbuild bundles styles; an import has a side effect and no value. */
declare module "*.css";
