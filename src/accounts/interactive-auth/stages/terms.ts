import type { AccountOptions } from '../../account-options.ts';
import type { Stage } from '../stage.ts';

type Options = Pick<AccountOptions, 'user_consent' | 'server_name' | 'public_baseurl'>;

/**
 * Returns `m.login.terms` for the policy of `user_consent`; an empty list when there is no policy. A client completes
 * the stage after the user has agreed. Source: client-server API, "Terms of service at registration".
 */
export function termsStages(options: Options): Stage[] {
  const { user_consent: consent } = options;
  if (consent?.version === null || consent?.version === undefined) return [];
  const { version, policy_name: name } = consent;
  const base = options.public_baseurl ?? `https://${options.server_name}/`;
  const url = new URL(`_matrix/consent?v=${encodeURIComponent(version)}`, base).href;
  const stage: Stage = {
    type: 'm.login.terms',
    params: () => ({ policies: { privacy_policy: { version, en: { name, url } } } }),
    verify: () => ({ version }),
    form: {
      template: 'terms.html',
      values: () => ({ terms_url: url, policy_name: name }),
      submit: () => ({ auth: {} }),
    },
  };
  return [stage];
}
