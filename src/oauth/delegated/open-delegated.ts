import type { AccountsSlice } from '../../accounts/index.ts';
import type { Profiles } from '../../profiles/index.ts';
import type { AccountMails } from '../account/account-pages.ts';
import type { CrossSigningResets } from '../cross-signing-resets.ts';
import { issuerRoute, resetFallbackRoute } from '../discovery-routes.ts';
import type { AuthenticationService } from './authentication-service.ts';
import { provisioningRoutes } from './provisioning-routes.ts';

export interface DelegatedDeps {
  readonly service: AuthenticationService;
  readonly slice: AccountsSlice;
  readonly profiles: Profiles;
  readonly mails: AccountMails | undefined;
  readonly resets: CrossSigningResets;
}

/** Opens the routes that a separate authentication service, and clients that use it, need on this server. */
export function openDelegatedAuthentication(deps: DelegatedDeps) {
  const { service } = deps;
  return {
    routes: [
      ...provisioningRoutes(deps),
      resetFallbackRoute(() => service.accountUrl()),
      issuerRoute(async () => String((await service.metadata())['issuer'])),
    ],
  };
}
