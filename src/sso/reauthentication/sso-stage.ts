import type { Flows, Stage } from '../../accounts/index.ts';
import { forbidden } from '../../protocol/index.ts';
import type { ProviderDescription } from '../browser-logins/identity-provider.ts';
import type { ExternalIds } from '../external-ids/external-ids.ts';

export const ssoStageType = 'm.login.sso';

/** Path where a user confirms an action with a provider. */
export const confirmationPath = '/_synapse/client/sso/confirm';

export interface SsoStageDeps {
  readonly providers: () => readonly ProviderDescription[];
  readonly externalIds: Pick<ExternalIds, 'list'>;
}

/**
 * `m.login.sso`: a logged-in user confirms an action by logging in again at a provider that is linked to the account.
 * Source: client-server API, "Single Sign-On" of "Authentication types".
 */
export function ssoStage(deps: SsoStageDeps): Stage {
  return {
    type: ssoStageType,
    verify() {
      throw forbidden('The confirmation in the browser is not complete');
    },
    form: {
      template: 'sso_auth_confirm.html',
      async values({ requester, session }) {
        const linked = requester === undefined ? [] : await linkedProviders(deps, requester.userId);
        const providers = linked.map(({ id, name }) => ({
          idp_id: id,
          idp_name: name,
          url: `${confirmationPath}/${encodeURIComponent(id)}?session=${encodeURIComponent(session)}`,
        }));
        return {
          user_id: requester?.userId,
          providers,
          idp: providers[0],
          redirect_url: providers[0]?.url,
          description: 'carry out an action on your account',
        };
      },
      submit() {
        throw forbidden('Confirm with your identity provider');
      },
    },
  };
}

/** Returns the flows that a user can confirm an action with: none for users without a linked provider. */
export async function ssoFlows(deps: SsoStageDeps, userId: string): Promise<Flows> {
  if (deps.providers().length === 0) return [];
  return (await linkedProviders(deps, userId)).length > 0 ? [[ssoStageType]] : [];
}

async function linkedProviders(
  { providers, externalIds }: SsoStageDeps,
  userId: string,
): Promise<readonly ProviderDescription[]> {
  const linked = new Set((await externalIds.list(userId)).map(({ provider }) => provider));
  return providers().filter(({ id }) => linked.has(id));
}
