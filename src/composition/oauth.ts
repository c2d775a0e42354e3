import type { AccountsSlice, ConfirmationElsewhere } from '../accounts/index.ts';
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
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';

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

/** Opens the authorization server if it is enabled; to be called before jobs are started. */
export function startAuthorizationServer(
  kernel: Kernel,
  { accounts, resets }: { readonly accounts: AccountsSlice; readonly resets: CrossSigningResets },
  pages: Pages,
  opened: OpenedSlices,
): void {
  if (!kernel.configuration.oauth.oauth2.enabled) return;
  const endpoints = endpointsOf(kernel);
  const deps = { ...kernel, accounts, pages, endpoints, resets };
  opened.add('authorization server', openAuthorizationServer(deps));
}

const endpointsOf = ({ configuration, serverName }: Kernel) =>
  new Endpoints(configuration.server.public_baseurl, serverName);
