/** Accounts of this server: registration, deactivation, login, sessions and access tokens. */
export {
  type AccountChecks,
  type AccountNames,
  type AuthenticatedLogin,
  combinedChecks,
  type OpenedLogin,
  type PendingRegistration,
  type RegistrationVerdict,
} from './account-checks.ts';
export type { AccountOptions } from './account-options.ts';
export { AccountReader } from './account-reader.ts';
export {
  type AccountChange,
  type AccountLifecycle,
  Accounts,
  type LogoutScope,
  type RegisteredAccount,
} from './accounts.ts';
export type { AccountsConfig } from './config.ts';
export {
  type ConsentGateDeps,
  consentGatedRoutes,
  isExemptFromConsent,
  requireConsent,
} from './consent/consent-gate.ts';
export type { Consents } from './consent/consents.ts';
export { sendingOperations } from './consent/sending-operations.ts';
export { countNewUsers, countUsers } from './count-users.ts';
export { hasAccounts, isFirstAccount } from './first-account.ts';
export { Housekeeping } from './housekeeping.ts';
export type { BrowserStages } from './interactive-auth/browser-stages.ts';
export { Challenge } from './interactive-auth/challenge.ts';
export type {
  InteractiveAuth,
  InteractiveAuthRequest,
  InteractiveAuthResult,
} from './interactive-auth/interactive-auth.ts';
export type {
  AccountConfirmation,
  ExternalConfirmation,
  Reauthenticator,
} from './interactive-auth/reauthenticator.ts';
export type { Flows, Stage, StageContext, StageForm } from './interactive-auth/stage.ts';
export { LimitOverrides } from './limit-overrides/limit-overrides.ts';
export { limitOverrideMigrations } from './limit-overrides/migration.ts';
export { limitOverrideRoutes } from './limit-overrides/routes.ts';
export {
  type AccountLimits,
  availabilityRate,
  challengeRate,
  type Limiter,
  loginTokenRate,
} from './limits.ts';
export { activeAccount } from './login/active-account.ts';
export type { AuthenticatedUser, BeforeReopening, Login, LoginRequest, LoginType } from './login/login.ts';
export type { LoginTokens } from './login/login-tokens.ts';
export type { TokenIssuer } from './login/token-login.ts';
export { accountMigrations } from './migrations.ts';
export {
  type AccountExtensions,
  type AccountsEnvironment,
  type AccountsSlice,
  type AccountsSliceOptions,
  openAccounts,
} from './open.ts';
export { accountPageRoutes, accountTemplates } from './pages/account-pages.ts';
export { passwordResetPageOf } from './pages/password-reset-page.ts';
export { requireSameOrigin } from './pages/same-origin.ts';
export { canChangePassword, type PasswordChange } from './passwords/password-change.ts';
export type { PasswordAuthority } from './passwords/password-login.ts';
export { maxPasswordLength } from './passwords/password-policy.ts';
export type { NewAccount } from './registration/account-creation.ts';
export type { RegistrationResult } from './registration/registered-account.ts';
export type { Registration } from './registration/registration.ts';
export { registrationMac, type SharedSecretRegistration } from './registration/shared-secret.ts';
export type { NewRegistrationToken, RegistrationTokens } from './registration-tokens/registration-tokens.ts';
export type { RegistrationToken, TokenLimits } from './registration-tokens/token-store.ts';
export { countRegularUsers, readRegularUsers } from './regular-users.ts';
export type { RefreshCheck } from './routes/login-routes.ts';
export { requireSameServerName } from './server-name-check.ts';
export type { LoginDevice, OpenedSession } from './sessions/opened-session.ts';
export type { IssuedTokens, SessionChange, Sessions, TokenOwner } from './sessions/sessions.ts';
export { lockedAccount } from './sessions/token-errors.ts';
export type { IntrospectedToken, TokenIntrospection } from './sessions/token-introspection.ts';
export type { AccountTables } from './tables.ts';
export {
  noThirdPartyIdentifiers,
  type ThirdPartyIdentifiers,
  type ValidatedAddress,
  validatedAddresses,
} from './third-party-identifiers.ts';
export type { User } from './user-store.ts';
export { checkUserType } from './user-types.ts';
export {
  appserviceLoginUnsupported,
  type UsernameReservations,
  userIdFor,
  userIdFromInput,
} from './usernames.ts';
