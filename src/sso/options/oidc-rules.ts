import type { RuleView } from '../../kernel/config/index.ts';
import type { OidcProviderConfig } from './oidc.ts';

type ProviderRule = (provider: OidcProviderConfig, path: string, view: RuleView) => void;

const rules: readonly ProviderRule[] = [clientSecret, jwtKey, endpoints, unverifiedIssuer, deprecatedClaims];

/** Rules about each provider and between providers. */
export function oidcRules(providers: readonly OidcProviderConfig[], view: RuleView): void {
  const seen = new Set<string>();
  for (const [index, provider] of providers.entries()) {
    const path = `oidc_providers[${index}]`;
    if (seen.has(provider.idp_id))
      view.error(`${path}.idp_id`, `${provider.idp_id} is the id of another provider`);
    seen.add(provider.idp_id);
    for (const rule of rules) rule(provider, path, view);
  }
}

function clientSecret(provider: OidcProviderConfig, path: string, view: RuleView): void {
  const proven =
    provider.client_secret !== null ||
    provider.client_secret_jwt_key !== null ||
    provider.client_auth_method === 'none';
  if (!proven) {
    const message =
      'must be given, or client_secret_path, client_secret_jwt_key, or client_auth_method: none';
    view.error(`${path}.client_secret`, message);
  }
}

function jwtKey({ client_secret_jwt_key: key }: OidcProviderConfig, path: string, view: RuleView): void {
  if (key !== null && (key.key === null) === (key.key_file === null)) {
    view.error(`${path}.client_secret_jwt_key`, 'needs either key or key_file, not both');
  }
}

function endpoints(provider: OidcProviderConfig, path: string, view: RuleView): void {
  if (provider.discover) return;
  const openid = (provider.scopes ?? ['openid']).includes('openid');
  const needed = [
    'authorization_endpoint',
    'token_endpoint',
    openid ? 'jwks_uri' : 'userinfo_endpoint',
  ] as const;
  for (const name of needed) {
    if (provider[name] === null) view.error(`${path}.${name}`, 'must be given when discover is off');
  }
}

function unverifiedIssuer(
  { issuer, skip_verification: isLenient }: OidcProviderConfig,
  path: string,
  view: RuleView,
): void {
  if (isLenient || issuer.startsWith('https://')) return;
  view.warn(`${path}.issuer`, 'is not an https:// URL: logins fail unless skip_verification is on');
}

function deprecatedClaims(provider: OidcProviderConfig, path: string, view: RuleView): void {
  const config = provider.user_mapping_provider.config;
  for (const kind of ['subject', 'picture'] as const) {
    if (config[`${kind}_claim`] === null) continue;
    const place = `${path}.user_mapping_provider.config.${kind}_claim`;
    view.warn(place, `is deprecated; use ${kind}_template`);
  }
}
