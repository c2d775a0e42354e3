import { type DeviceCleanup, type DeviceIdCheck, Devices, deviceRoutes, LastSeen } from '../devices/index.ts';
import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Route } from '../kernel/http/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { OutboundHttp } from '../kernel/outbound/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import type { StreamWriter } from '../kernel/streams/index.ts';
import type { JsonObject } from '../protocol/index.ts';
import type { AccountChecks, AccountNames, OpenedLogin } from './account-checks.ts';
import type { AccountOptions } from './account-options.ts';
import { type AccountLifecycle, Accounts } from './accounts.ts';
import { Consents } from './consent/consents.ts';
import { type DisabledServerOptions, disabledServerError } from './disabled-server.ts';
import { Housekeeping } from './housekeeping.ts';
import { AuthSessions } from './interactive-auth/auth-sessions.ts';
import { BrowserStages } from './interactive-auth/browser-stages.ts';
import { InteractiveAuth } from './interactive-auth/interactive-auth.ts';
import { type ExternalConfirmation, Reauthenticator } from './interactive-auth/reauthenticator.ts';
import { dummyStage, type Flows, type Stage, type Stages } from './interactive-auth/stage.ts';
import { recaptchaStages } from './interactive-auth/stages/recaptcha.ts';
import { termsStages } from './interactive-auth/stages/terms.ts';
import type { AccountLimits } from './limits.ts';
import { type BeforeReopening, Login, type LoginType } from './login/login.ts';
import { LoginTokens } from './login/login-tokens.ts';
import { type TokenIssuer, TokenLogin } from './login/token-login.ts';
import { PasswordChange } from './passwords/password-change.ts';
import { PasswordHasher } from './passwords/password-hasher.ts';
import { type PasswordAuthority, PasswordLogin } from './passwords/password-login.ts';
import { AccountCreation } from './registration/account-creation.ts';
import { GuestUpgrade } from './registration/guest-upgrade.ts';
import { Registration } from './registration/registration.ts';
import { SharedSecretRegistration } from './registration/shared-secret.ts';
import { RegistrationTokens } from './registration-tokens/registration-tokens.ts';
import { tokenValidityRoute } from './registration-tokens/routes.ts';
import { registrationTokenStage } from './registration-tokens/token-stage.ts';
import { accountManagementRoutes } from './routes/account-routes.ts';
import { lockingRoutes } from './routes/locking-routes.ts';
import { loginRoutes, type RefreshCheck, sessionRoutes } from './routes/login-routes.ts';
import { loginTokenRoutes } from './routes/login-token-route.ts';
import { passwordPolicyRoute, registrationRoutes, sharedSecretRoutes } from './routes/registration-routes.ts';
import { SessionAuthenticator } from './sessions/session-authenticator.ts';
import { SessionCache } from './sessions/session-cache.ts';
import { Sessions } from './sessions/sessions.ts';
import type { TokenIntrospection } from './sessions/token-introspection.ts';
import { noThirdPartyIdentifiers, type ThirdPartyIdentifiers } from './third-party-identifiers.ts';
import type { UsernameReservations } from './usernames.ts';

/** The services of other slices that accounts need. */
export interface AccountsEnvironment {
  readonly caches: CacheRegistry;
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly log: Logger;
  readonly limits: AccountLimits;
  /** Signs the access tokens of guests, and login tokens. */
  readonly tokenKey: Uint8Array;
  /** For the CAPTCHA service; absent in processes that serve no registrations. */
  readonly http?: Pick<OutboundHttp, 'fetch'> | undefined;
}

export interface AccountsSliceOptions extends AccountOptions, Partial<DisabledServerOptions> {
  /** Milliseconds; null stores the addresses of users forever. */
  readonly user_ips_max_age: number | null;
  /** Milliseconds; null stores unused devices forever. */
  readonly delete_stale_devices_after: number | null;
}

/** What OAuth 2.0 changes in the sessions of accounts. */
export interface OAuthExtensions {
  /** Introspects access tokens at an authentication service; absent when this server issues them. */
  readonly introspection?: TokenIntrospection | undefined;
  /** Confirms actions of sessions that cannot use interactive authentication. */
  readonly externalConfirmation?: ExternalConfirmation | undefined;
  /** Refuses to refresh sessions whose tokens another endpoint refreshes. */
  readonly checkRefresh?: RefreshCheck | undefined;
}

/** Extensions of accounts that other slices provide. */
export interface AccountExtensions {
  readonly devices?: DeviceExtensions;
  /** Run in the transactions that change accounts. */
  readonly lifecycleHooks?: readonly AccountLifecycle[];
  /** Stages of interactive authentication that other slices add. */
  readonly stages?: readonly Stage[];
  /** Flows, besides the password, that let a logged-in user confirm an action. */
  readonly confirmation?: (userId: string) => Promise<Flows>;
  readonly loginTypes?: readonly LoginType[];
  readonly oauth?: OAuthExtensions | undefined;
  /** Deletes what slices have stored about the earlier session when a device logs in again. */
  readonly beforeReopening?: readonly BeforeReopening[] | undefined;
  /** Issues login tokens at the end of logins through a browser; absent on a server without these logins. */
  readonly loginTokenIssuer?: TokenIssuer;
  /** Mail addresses and phone numbers of accounts; absent on a server without them. */
  readonly thirdPartyIds?: ThirdPartyIdentifiers;
  readonly reservations?: UsernameReservations;
  /** Accepts passwords that this server does not store. */
  readonly passwordAuthority?: PasswordAuthority | undefined;
  readonly checks?: AccountChecks | undefined;
  /** Chooses names of new accounts. */
  readonly names?: AccountNames | undefined;
  /** Receives each login, after its session is stored. */
  readonly loggedIn?: ((login: OpenedLogin) => void) | undefined;
  /** The content of `/.well-known/proto/client`. Login responses contain it as well. */
  readonly wellKnown?: JsonObject | undefined;
}

/** What other slices do when devices are created and deleted. */
export interface DeviceExtensions {
  /** Run in the transaction that deletes devices. */
  readonly cleanups?: readonly DeviceCleanup[];
  /** Checks the id of a new device, and may refuse it. */
  readonly checkNewIds?: DeviceIdCheck;
}

/** The services of accounts, with their routes and streams. */
export type AccountsSlice = ReturnType<typeof openAccounts>;

type AccountServices = ReturnType<typeof openServices>;

const noReservations: UsernameReservations = { isReservedFrom: () => false };

/** Opens the services for accounts, sessions and devices. */
export function openAccounts(
  environment: AccountsEnvironment,
  options: AccountsSliceOptions,
  extensions: AccountExtensions = {},
) {
  const services = openServices(environment, options, extensions);
  const { accounts, devices, sessions, lastSeen } = services;
  return {
    ...services,
    routes: [...routesOf(services), passwordPolicyRoute(options.password_config.policy)],
    streams: [accounts.accountStream, sessions.sessionStream, devices.deviceListStream] as const,
    stop: () => lastSeen.flush(),
  };
}

function openServices(
  environment: AccountsEnvironment,
  options: AccountsSliceOptions,
  extensions: AccountExtensions,
) {
  const { limits } = environment;
  const cache = new SessionCache(environment.caches);
  const sessions = new Sessions({ ...environment, cache, options });
  const lastSeen = new LastSeen(environment, options);
  const { cleanups = [], checkNewIds } = extensions.devices ?? {};
  const devices = new Devices({ ...environment, lastSeen, checkNewIds }, [sessions, ...cleanups]);
  const hasher = new PasswordHasher(options.bcrypt_rounds, options.password_config.pepper);
  const thirdPartyIds = extensions.thirdPartyIds ?? noThirdPartyIdentifiers;
  const passwordLogin = new PasswordLogin(
    {
      ...environment,
      hasher,
      thirdPartyIds,
      limits: limits.login,
      provider: extensions.passwordAuthority,
    },
    options,
  );
  const registrationTokens = new RegistrationTokens(environment);
  const stageList = [
    dummyStage,
    passwordLogin,
    registrationTokenStage(registrationTokens, limits.tokenValidity),
    ...recaptchaStages(environment.http, options),
    ...termsStages(options),
    ...(extensions.stages ?? []),
  ];
  const stages: Stages = new Map(stageList.map((stage) => [stage.type, stage]));
  const authSessions = new AuthSessions(environment);
  const interactiveAuth = new InteractiveAuth(authSessions, stages);
  const accounts = new Accounts(
    { ...environment, devices, sessions, authSessions, checkDeactivation: extensions.checks?.deactivation },
    extensions.lifecycleHooks ?? [],
  );
  const disabledError = disabledServerError(options);
  const commonDeps = {
    ...environment,
    accounts,
    devices,
    sessions,
    hasher,
    interactiveAuth,
    lastSeen,
    disabledError,
    thirdPartyIds,
  };
  const confirmationFlows = async (userId: string) => [
    ...(passwordLogin.confirms ? [[passwordLogin.type]] : []),
    ...((await extensions.confirmation?.(userId)) ?? []),
  ];
  const reservations = extensions.reservations ?? noReservations;
  const consents = new Consents({
    ...environment,
    formSecret: options.form_secret,
    currentVersion: options.user_consent?.version ?? null,
    baseUrl: options.public_baseurl ?? `https://${options.server_name}/`,
  });
  const registration = new Registration(
    {
      ...commonDeps,
      creation: new AccountCreation(commonDeps, options),
      guestUpgrade: new GuestUpgrade(commonDeps, options.server_name),
      consents,
      registrationTokens,
      reservations,
      checks: extensions.checks,
      names: extensions.names,
    },
    options,
  );
  const reauthenticator = new Reauthenticator(
    {
      auth: interactiveAuth,
      sessions,
      flows: confirmationFlows,
      external: extensions.oauth?.externalConfirmation,
    },
    options,
  );
  const loginTokens = new LoginTokens(environment);
  const tokenLogin = new TokenLogin({ loginTokens, accounts, issuer: extensions.loginTokenIssuer }, options);
  return {
    accounts,
    devices,
    sessions,
    lastSeen,
    interactiveAuth,
    browserStages: new BrowserStages(authSessions, stages),
    registration,
    consents,
    registrationTokens,
    tokenValidity: tokenValidityRoute({ registrationTokens, limiter: limits.tokenValidity }, options),
    authenticator: new SessionAuthenticator(
      {
        ...commonDeps,
        cache,
        introspection: extensions.oauth?.introspection,
        hasDevice: (userId, deviceId) => devices.exists(userId, deviceId),
      },
      options,
    ),
    reauthenticator,
    loginTokens,
    loginTokenRoutes: loginTokenRoutes(
      { loginTokens, reauthenticator, limiter: limits.loginTokens },
      options,
    ),
    sharedSecretRegistration: new SharedSecretRegistration({ ...environment, registration }, options),
    login: new Login({
      ...commonDeps,
      limits: limits.login,
      types: [passwordLogin, tokenLogin, ...(extensions.loginTypes ?? [])],
      check: extensions.checks?.login,
      beforeReopening: extensions.beforeReopening,
      loggedIn: extensions.loggedIn,
    }),
    passwordChange: new PasswordChange(commonDeps, options),
    reservations,
    thirdPartyIds,
    housekeeping: new Housekeeping(commonDeps, options),
    wellKnown: extensions.wellKnown,
    checkRefresh: extensions.oauth?.checkRefresh,
    serverName: options.server_name,
  };
}

function routesOf(slice: AccountServices): Route[] {
  return [
    ...registrationRoutes(slice.registration),
    slice.tokenValidity,
    ...sharedSecretRoutes(slice.sharedSecretRegistration),
    ...loginRoutes(slice.login, slice.wellKnown),
    ...slice.loginTokenRoutes,
    ...sessionRoutes(slice),
    ...accountManagementRoutes(slice),
    ...lockingRoutes(slice.accounts, slice.serverName),
    ...deviceRoutes(slice.devices, slice.reauthenticator),
  ];
}
