import {
  type AccountsSlice,
  type BeforeReopening,
  canChangePassword,
  type ExternalConfirmation,
  type RefreshCheck,
} from '../accounts/index.ts';
import type { AuthMetadata } from '../capabilities/index.ts';
import type { Requester } from '../kernel/http/index.ts';
import type { Pages } from '../kernel/pages/index.ts';
import {
  AuthenticationService,
  authMetadata,
  ConfirmationOnPage,
  CrossSigningResets,
  checkNotOAuth,
  Endpoints,
  forgetOAuthSession,
  isOAuthSession,
  openAuthorizationServer,
  openDelegatedAuthentication,
  pagePaths,
  ReplacementWithoutConfirmation,
} from '../oauth/index.ts';
import type { Profiles } from '../profiles/index.ts';
import type { JsonObject } from '../protocol/index.ts';
import type { SsoSlice } from '../sso/index.ts';
import { openHttpToConfiguredServers } from './http-to-configured-servers.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import type { OpenedThirdPartyIds } from './third-party-ids.ts';

/** The parts of OAuth 2.0 that accounts and capabilities use. */
export interface OAuthBeforeUsers {
  readonly resets: CrossSigningResets;
  readonly externalConfirmation: ExternalConfirmation;
  /** Absent while no authorization server is in use. */
  readonly authMetadata?: AuthMetadata;
  /**
   * Whether a session can confirm operations by interactive authentication. A session of OAuth 2.0 cannot: its user
   * confirms them on a page.
   */
  readonly canConfirm?: (requester: Pick<Requester, 'userId' | 'deviceId'>) => Promise<boolean>;
  /** Refuses to refresh sessions of OAuth 2.0 by `POST /refresh`. */
  readonly checkRefresh?: RefreshCheck;
  /** Forgets the OAuth 2.0 session of a device when the device logs in again. */
  readonly beforeReopening?: BeforeReopening;
  /** The separate service that authenticates users in place of this server. */
  readonly service?: AuthenticationService;
}

/** Opens the parts of OAuth 2.0 that accounts use. */
export function openOAuthBeforeUsers(kernel: Kernel, opened: OpenedSlices): OAuthBeforeUsers {
  const { configuration, database } = kernel;
  const resets = new CrossSigningResets(kernel);
  if (configuration.accounts.proto_authentication_service.enabled) {
    return withService(kernel, resets, openService(kernel, opened));
  }
  if (!configuration.oauth.oauth2.enabled) {
    return { resets, externalConfirmation: new ReplacementWithoutConfirmation(resets) };
  }
  const endpoints = endpointsOf(kernel);
  const accountUrl = endpoints.url(pagePaths.account);
  return {
    resets,
    externalConfirmation: new ReplacementWithoutConfirmation(
      resets,
      new ConfirmationOnPage({
        ...kernel,
        resets,
        appliesTo: (userId, deviceId) => isOAuthSession(database, userId, deviceId),
        accountUrl: async () => accountUrl,
      }),
    ),
    authMetadata: async () => authMetadata(endpoints, canRegister(kernel)),
    canConfirm: async ({ userId, deviceId }) => !(await isOAuthSession(database, userId, deviceId)),
    checkRefresh: checkNotOAuth,
    beforeReopening: forgetOAuthSession,
  };
}

/** Returns the parts that accounts use while a separate service authenticates users. */
function withService(
  kernel: Kernel,
  resets: CrossSigningResets,
  service: AuthenticationService,
): OAuthBeforeUsers {
  return {
    resets,
    service,
    externalConfirmation: new ConfirmationOnPage({
      ...kernel,
      resets,
      appliesTo: async () => true,
      accountUrl: () => service.accountUrl(),
    }),
    authMetadata: () => service.metadata(),
  };
}

/** Opens the connection to the authentication service. The service may be at a private address. */
function openService(kernel: Kernel, opened: OpenedSlices): AuthenticationService {
  const { endpoint, force_http2: http2, secret } = kernel.configuration.accounts.proto_authentication_service;
  const http = openHttpToConfiguredServers(kernel, 'authentication_service_pools', { http2, maxPools: 8 });
  opened.add('authentication service', { stop: () => http.close() });
  const log = kernel.namedLog('authentication_service');
  return new AuthenticationService({ ...kernel, http, log }, { endpoint, secret: secret ?? '' });
}

/** The slices that the authorization server uses. */
export interface AuthorizationServerParts {
  readonly accounts: AccountsSlice;
  readonly profiles: Profiles;
  readonly resets: CrossSigningResets;
  readonly service?: AuthenticationService | undefined;
  readonly addresses: OpenedThirdPartyIds | undefined;
  readonly sso: SsoSlice | undefined;
}

/**
 * Opens the authorization server. When a separate service authenticates users, opens delegated authentication instead.
 * Opens nothing when both are off. Must be called before jobs are started.
 */
export function startAuthorizationServer(
  kernel: Kernel,
  { accounts, profiles, resets, service, addresses, sso }: AuthorizationServerParts,
  pages: Pages,
  opened: OpenedSlices,
): void {
  if (service !== undefined) {
    const delegated = { service, slice: accounts, profiles, mails: addresses?.thirdPartyIds, resets };
    opened.add('authentication by a service', openDelegatedAuthentication(delegated));
    return;
  }
  if (!kernel.configuration.oauth.oauth2.enabled) return;
  const endpoints = endpointsOf(kernel);
  const options = kernel.configuration.accounts;
  const deps = {
    ...kernel,
    accounts,
    profiles,
    pages,
    endpoints,
    resets,
    sso,
    mails: addresses?.thirdPartyIds,
    sendsMail: kernel.configuration.mail.email !== null,
    canChangePassword: canChangePassword(options),
    canChangeAddresses: options.enable_3pid_changes,
  };
  opened.add('authorization server', openAuthorizationServer(deps));
}

/** Whether users can create an account with a password on a page. */
function canRegister({ configuration: { accounts } }: Kernel): boolean {
  const { enabled, localdb_enabled: hasPasswords } = accounts.password_config;
  return accounts.enable_registration && hasPasswords && enabled === true && !accounts.hs_disabled;
}

const endpointsOf = ({ configuration, serverName }: Kernel) =>
  new Endpoints(configuration.server.public_baseurl, serverName);

/**
 * Returns the part of `/.well-known/matrix/client` about an authorization server. Source: MSC2965 of 2022.
 */
export async function authenticationOf(authMetadata: AuthMetadata): Promise<JsonObject> {
  const { issuer = null, account_management_uri: account = null } = await authMetadata();
  return { issuer, account };
}
