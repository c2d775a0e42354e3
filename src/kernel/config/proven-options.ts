/** Options whose effect a test proves. Generated from the titles of tests by `scripts/generate-docs.ts`. */
export const provenOptions: readonly string[] = [];
