import type { SAML, SamlConfig } from '@node-saml/node-saml';
import type { SamlIdentityProvider } from './saml-metadata.ts';
import type { ServiceProviderConfig } from './service-provider-config.ts';

/** This server as a service provider of SAML: its addresses, its metadata, and its exchanges with identity providers. */
export class ServiceProvider {
  readonly config: ServiceProviderConfig;
  readonly entityId: string;
  /** The location that receives responses. */
  readonly responseUrl: string;

  /** @param baseUrl public URL of this server, ending in a slash */
  constructor(config: ServiceProviderConfig, baseUrl: string) {
    this.config = config;
    this.entityId = config.entityId ?? `${baseUrl}_synapse/client/saml2/metadata.xml`;
    this.responseUrl = `${baseUrl}_synapse/client/saml2/authn_response`;
  }

  /** Returns the metadata of this server, for identity providers. */
  async metadata(): Promise<string> {
    const { generateServiceProviderMetadata } = await import('@node-saml/node-saml');
    const { certificate } = this.config;
    return generateServiceProviderMetadata({
      issuer: this.entityId,
      callbackUrl: this.responseUrl,
      wantAssertionsSigned: true,
      ...this.#keys(),
      ...(certificate !== undefined && { decryptionCert: certificate, publicCerts: certificate }),
    });
  }

  /** Returns the object that composes the requests to an identity provider. */
  requests(
    provider: SamlIdentityProvider,
    { requestId, isForced }: { readonly requestId: string; readonly isForced: boolean },
  ): Promise<SAML> {
    return this.#saml(provider, { forceAuthn: isForced, generateUniqueId: () => requestId });
  }

  /**
   * Returns the object that verifies the responses of an identity provider. The signature of the assertion or of the whole
   * response suffices, unless the configuration requires one of them; only the signed part is read afterwards.
   * @param hasOwnSignature whether the response itself is signed: then its signature must be valid
   */
  responses(provider: SamlIdentityProvider, hasOwnSignature: boolean): Promise<SAML> {
    const { requiresSignedAssertions, requiresSignedResponses } = this.config;
    return this.#saml(provider, {
      wantAssertionsSigned: requiresSignedAssertions,
      wantAuthnResponseSigned: requiresSignedResponses || hasOwnSignature,
    });
  }

  async #saml(provider: SamlIdentityProvider, more: Partial<SamlConfig>): Promise<SAML> {
    const { SAML, ValidateInResponseTo } = await import('@node-saml/node-saml');
    return new SAML({
      issuer: this.entityId,
      audience: this.entityId,
      callbackUrl: this.responseUrl,
      entryPoint: provider.singleSignOn,
      idpIssuer: provider.entityId,
      idpCert: [...provider.certificates],
      acceptedClockSkewMs: this.config.acceptedTimeDiff * 1000,
      identifierFormat: null,
      disableRequestedAuthnContext: true,
      // `SamlProvider.authenticate` compares InResponseTo with the login session instead, after the signature was verified.
      validateInResponseTo: ValidateInResponseTo.never,
      ...this.#keys(),
      ...more,
    });
  }

  #keys() {
    const { privateKey } = this.config;
    if (privateKey === undefined) return {};
    return { privateKey, decryptionPvk: privateKey, signatureAlgorithm: 'sha256' } as const;
  }
}
