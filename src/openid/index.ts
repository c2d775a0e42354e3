/** OpenID tokens: they prove the identity of a user to other services. */

export { openIdMigrations } from './migrations.ts';
export { openOpenId } from './open.ts';
export { OpenIdTokens } from './openid-tokens.ts';
