/**
 * Single sign-on: logins with accounts of other systems, by OpenID Connect, SAML, CAS and JSON web tokens.
 */
export type { BeginLogin, BrowserLogins } from './browser-logins/browser-logins.ts';
export type { BrowserRequest, FinishedLogin, LoginContinuation } from './browser-logins/continuation.ts';
export type { ProviderDescription } from './browser-logins/identity-provider.ts';
export { LoginFailure } from './browser-logins/login-failure.ts';
export type { ExternalId } from './external-ids/external-id-store.ts';
export { type ExternalIds, maxExternalId } from './external-ids/external-ids.ts';
export type { ProviderLogout, ProviderSession, ProviderSessions } from './external-ids/provider-sessions.ts';
export type { PictureStore } from './new-accounts/provider-profiles.ts';
export { beginRate, openSso, type SsoSlice, ssoTemplates } from './open.ts';
export { mappingModules } from './options/mapping-modules.ts';
export type { SsoDeps, SsoOptions } from './sso-deps.ts';
export type { MappedUser, UserMapper } from './user-mapper.ts';
