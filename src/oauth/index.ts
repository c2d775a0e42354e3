/**
 * The authorization server of the OAuth 2.0 API, and authentication that is delegated to a separate service.
 */
import { fileURLToPath } from 'node:url';

export type { OAuthConfig } from './config.ts';
export { ConfirmationOnPage, isOAuthSession } from './confirmation-on-page.ts';
export { CrossSigningResets } from './cross-signing-resets.ts';
export { AuthenticationService } from './delegated/authentication-service.ts';
export { withoutLocalLogins } from './delegated/local-logins.ts';
export { openDelegatedAuthentication } from './delegated/open-delegated.ts';
export { Endpoints, pagePaths } from './endpoints.ts';
export { authMetadata } from './metadata.ts';
export { type AuthorizationServerDeps, openAuthorizationServer } from './open.ts';
export { ReplacementWithoutConfirmation } from './replacement-without-confirmation.ts';
export { forgetOAuthSession } from './tokens/forgotten-session.ts';
export { checkNotOAuth } from './tokens/refresh-check.ts';

/** Folder of the templates of the pages for users. */
export const oauthTemplates = fileURLToPath(new URL('./templates', import.meta.url));
