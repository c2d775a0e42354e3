/** OpenID tokens, with which users prove their identity to other services. */

export { openIdManifest } from './manifest.ts';
export { openIdMigrations } from './migrations.ts';
export { OpenIdTokens } from './openid-tokens.ts';
export { openIdRoutes } from './routes.ts';
