import { type AccountsSlice, passwordResetPageOf } from '../accounts/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Route } from '../kernel/http/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import type { Pages } from '../kernel/pages/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import type { RateLimit, RateLimiter } from '../kernel/rate-limits/index.ts';
import type { Profiles } from '../profiles/index.ts';
import type { SsoSlice } from '../sso/index.ts';
import type { AccountMails } from './account/account-pages.ts';
import { accountPageRoutes } from './account/account-routes.ts';
import { AuthorizationCodes } from './authorization/authorization-codes.ts';
import { authorizationRoutes } from './authorization/authorization-routes.ts';
import { BrowserSessions, SignInMarks } from './browser/browser-sessions.ts';
import { signInContinuation, signInRoutes } from './browser/sign-in-routes.ts';
import { Clients } from './clients/clients.ts';
import { clientRegistrationRoute } from './clients/registration-route.ts';
import type { CrossSigningResets } from './cross-signing-resets.ts';
import { deviceAuthorizationRoute, linkRoutes } from './device-grant/device-grant-routes.ts';
import { DeviceGrants } from './device-grant/device-grants.ts';
import { issuerMetadataRoute, issuerRoute, resetFallbackRoute } from './discovery-routes.ts';
import { type Endpoints, pagePaths } from './endpoints.ts';
import { Rendezvous } from './rendezvous/rendezvous.ts';
import { rendezvousRoutes } from './rendezvous/rendezvous-routes.ts';
import { OAuthSessions } from './tokens/oauth-sessions.ts';
import { tokenRoutes } from './tokens/token-routes.ts';

export interface AuthorizationServerDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly jobs: Jobs;
  readonly limiter: (limit: RateLimit) => RateLimiter;
  readonly accounts: AccountsSlice;
  readonly pages: Pages;
  readonly endpoints: Endpoints;
  readonly resets: CrossSigningResets;
  readonly profiles: Profiles;
  /** Absent on a server without mail addresses. */
  readonly mails: AccountMails | undefined;
  /** Whether users can change their passwords. */
  readonly canChangePassword: boolean;
  /** The option `enable_3pid_changes`. */
  readonly canChangeAddresses: boolean;
  /** Whether this server sends mail. */
  readonly sendsMail: boolean;
  /** Logins through identity providers; absent on a server without providers. */
  readonly sso: Pick<SsoSlice, 'logins' | 'oauthAware' | 'providerSessions'> | undefined;
}

/**
 * Rate limit of client registrations, of new device logins and of new rendezvous sessions from one client address; each
 * of the three is counted by itself.
 */
const addressRate: RateLimit = { per_second: 0.5, burst_count: 50 };

/** Rate limit of the codes of devices that one user enters: guessing a code of 35 bits would take years. */
const codeRate: RateLimit = { per_second: 0.1, burst_count: 10 };

/** Milliseconds between two deletions of rows that have expired. */
const cleanupInterval = 3_600_000;

/** Lifetime of a rendezvous session of MSC4108 in milliseconds. */
const msc4108Lifetime = 60_000;

/** Lifetime of a rendezvous session of MSC4388 in milliseconds. */
const msc4388Lifetime = 120_000;

/** Opens the authorization server. Must be called before jobs are started. */
export function openAuthorizationServer(deps: AuthorizationServerDeps) {
  const { accounts: accountsSlice, jobs, limiter, endpoints } = deps;
  const { accounts, devices, login, sessions, registration, serverName } = accountsSlice;
  const clients = new Clients(deps);
  const codes = new AuthorizationCodes({ ...deps, devices });
  const grants = new DeviceGrants(deps);
  const browsers = new BrowserSessions({ ...deps, accounts });
  const oauthSessions = new OAuthSessions({
    ...deps,
    clients,
    devices,
    sessions,
    login,
    providerSessions: deps.sso?.providerSessions,
  });
  cleanUpRegularly(jobs, { codes, grants, browsers, clients });
  const canRegister = registration.isOpen;
  const pageDeps = { ...deps, serverName, canRegister, clients, browsers };
  const grantDeps = {
    ...pageDeps,
    grants,
    beginLimiter: limiter(addressRate),
    codeLimiter: limiter(codeRate),
  };
  deps.sso?.logins.addContinuation(signInContinuation(browsers));
  deps.sso?.providerSessions.onLogout((logout) => browsers.endByLogout(logout));
  // Clients that prefer OAuth 2.0 offer no password login, so OAuth 2.0 is preferred only on
  // servers without passwords.
  if (deps.sso)
    deps.sso.oauthAware.isPreferred = !login.flows().some(({ type }) => type === 'm.login.password');
  const accountUrl = endpoints.url(pagePaths.account);
  const routes: Route[] = [
    resetFallbackRoute(async () => accountUrl),
    issuerRoute(async () => endpoints.issuer),
    issuerMetadataRoute(endpoints, canRegister),
    clientRegistrationRoute(clients, limiter(addressRate)),
    ...authorizationRoutes({ ...pageDeps, codes }),
    ...tokenRoutes({ clients, codes, deviceGrants: grants, sessions: oauthSessions, accounts }),
    deviceAuthorizationRoute(grantDeps),
    ...linkRoutes(grantDeps),
    ...signInRoutes({
      ...pageDeps,
      login,
      logins: deps.sso?.logins,
      marks: new SignInMarks(deps.randomness),
      resetPage: passwordResetPageOf(accountsSlice.passwordChange),
    }),
    ...accountPageRoutes({
      ...deps,
      accountsSlice,
      browsers,
      clients,
      sessions: oauthSessions,
      canAddAddresses: deps.canChangeAddresses && deps.sendsMail,
      canRemoveAddresses: deps.canChangeAddresses,
    }),
    ...openRendezvous(deps),
  ];
  return { routes };
}

/** Registers the job that deletes expired rows and unused clients. */
function cleanUpRegularly(
  jobs: Jobs,
  {
    codes,
    grants,
    browsers,
    clients,
  }: {
    readonly codes: AuthorizationCodes;
    readonly grants: DeviceGrants;
    readonly browsers: BrowserSessions;
    readonly clients: Clients;
  },
): void {
  jobs.every('oauth/clean', cleanupInterval, {
    run: async () => {
      await codes.deleteExpired();
      await grants.deleteExpired();
      await browsers.deleteExpired();
      await clients.deleteUnused();
    },
  });
}

/** Returns the routes of rendezvous sessions. */
const openRendezvous = (deps: AuthorizationServerDeps): Route[] =>
  rendezvousRoutes({
    msc4108: new Rendezvous(deps, msc4108Lifetime),
    msc4388: new Rendezvous(deps, msc4388Lifetime),
    endpoints: deps.endpoints,
    clock: deps.clock,
    limiter: deps.limiter(addressRate),
  });
