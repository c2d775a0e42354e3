import { isPythonClass } from '../kernel/config/index.ts';

/** Replacements of modules of the reference server, by the beginning of the module's name. */
const replacements: readonly (readonly [begin: string, replacement: string])[] = [
  [
    'ldap_auth_provider.',
    'contrib/modules/ldap-login.ts, or an OpenID Connect provider in front of the LDAP directory (oidc_providers)',
  ],
  ['rest_auth_provider.', 'a module in JavaScript that checks passwords'],
  ['shared_secret_authenticator.', 'bridges act as users by a registration in app_service_config_files'],
  ['synapse_auto_accept_invite.', 'nothing; users accept invites themselves'],
  ['synapse_auto_compressor.', 'nothing; state is stored in a compressed form anyway'],
  ['mjolnir.', 'mjolnir as a bot, which needs no module'],
  ['synapse_http_antispam.', 'a module in JavaScript that sends its requests to the same service'],
  ['synapse_simple_antispam.', 'contrib/modules/invite-policy.ts'],
];

/** Returns a remark about the name of a module that is written in Python; `undefined` for other names. */
export function foreignModuleRemark(name: string): string | undefined {
  if (!isPythonClass(name)) return undefined;
  const [, replacement] = replacements.find(([begin]) => name.startsWith(begin)) ?? [];
  return `is a module in Python for other server software; Hearth cannot load it and does not start with it. Delete it. Instead: ${replacement ?? 'a module in JavaScript, see docs/modules.md'}`;
}
