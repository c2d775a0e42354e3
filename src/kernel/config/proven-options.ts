/** Options whose effect a test proves. Generated from the titles of tests by `scripts/generate-docs.ts`. */
export const provenOptions: readonly string[] = [
  'trusted_key_servers[].accept_keys_insecurely',
  'suppress_key_server_warning',
];
