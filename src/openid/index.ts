/** OpenID tokens: how users show other services who they are. */
export { openIdMigrations } from './migrations.ts';
export { OpenIdTokens } from './openid-tokens.ts';
export { openIdRoutes } from './routes.ts';
