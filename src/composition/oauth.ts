import { type AccountsSlice, type ConfirmationElsewhere, canChangePassword } from '../accounts/index.ts';
import type { AuthMetadata } from '../capabilities/index.ts';
import type { Pages } from '../kernel/pages/index.ts';
import {
  authMetadata,
  ConfirmationOnPage,
  CrossSigningResets,
  Endpoints,
  isOAuthSession,
  openAuthorizationServer,
  pagePaths,
} from '../oauth/index.ts';
import type { Profiles } from '../profiles/index.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import type { OpenedThirdPartyIds } from './third-party-ids.ts';

/** The parts of OAuth 2.0 that accounts and capabilities use. */
export interface OAuthBeforeUsers {
  readonly resets: CrossSigningResets;
  /** Absent while no authorization server is in use. */
  readonly confirmationElsewhere?: ConfirmationElsewhere;
  readonly authMetadata?: AuthMetadata;
}

/** Opens the parts of OAuth 2.0 that accounts use. */
export function openOAuthBeforeUsers(kernel: Kernel): OAuthBeforeUsers {
  const { configuration, database } = kernel;
  const resets = new CrossSigningResets(kernel);
  if (!configuration.oauth.oauth2.enabled) return { resets };
  const endpoints = endpointsOf(kernel);
  const accountUrl = endpoints.url(pagePaths.account);
  return {
    resets,
    confirmationElsewhere: new ConfirmationOnPage({
      ...kernel,
      resets,
      appliesTo: (userId, deviceId) => isOAuthSession(database, userId, deviceId),
      accountUrl: async () => accountUrl,
    }),
    authMetadata: async () => authMetadata(endpoints, configuration.accounts.enable_registration),
  };
}

/** The slices that the authorization server uses. */
export interface AuthorizationServerParts {
  readonly accounts: AccountsSlice;
  readonly profiles: Profiles;
  readonly resets: CrossSigningResets;
  readonly addresses: OpenedThirdPartyIds | undefined;
}

/** Opens the authorization server if it is enabled; to be called before jobs are started. */
export function startAuthorizationServer(
  kernel: Kernel,
  { accounts, profiles, resets, addresses }: AuthorizationServerParts,
  pages: Pages,
  opened: OpenedSlices,
): void {
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
    mails: addresses?.thirdPartyIds,
    sendsMail: kernel.configuration.mail.email !== null,
    canChangePassword: canChangePassword(options),
    canChangeAddresses: options.enable_3pid_changes,
  };
  opened.add('authorization server', openAuthorizationServer(deps));
}

const endpointsOf = ({ configuration, serverName }: Kernel) =>
  new Endpoints(configuration.server.public_baseurl, serverName);
