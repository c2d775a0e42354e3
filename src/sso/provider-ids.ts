/**
 * Returns the id of an OpenID Connect provider: its `idp_id` with the prefix `oidc-`, but `oidc` for the `idp_id`
 * `oidc`, which the provider of the old option `oidc_config` has.
 */
export const oidcProviderId = (idpId: string): string => (idpId === 'oidc' ? 'oidc' : `oidc-${idpId}`);

/** The id of the one SAML provider, which `saml2_config` configures. */
export const samlProviderId = 'saml';
