/** OpenID tokens, with which users prove their identity to other services. */

export { openIdMigrations } from './migrations.ts';
export { openOpenId } from './open.ts';
export { OpenIdTokens } from './openid-tokens.ts';
