import { randomUUID, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { SignedXml } from 'xml-crypto';
import { encrypt } from 'xml-encryption';
import type { Certificate } from '../../../test/support/network/test-authority.ts';
import { publicUrl } from './sso-server.ts';

/** The URL that browsers send the responses of the identity provider to. */
export const responseUrl = `${publicUrl}/_synapse/client/saml2/authn_response`;

/** The entity id of the homeserver. */
export const serviceEntityId = `${publicUrl}/_synapse/client/saml2/metadata.xml`;

/** Values of a response. Without `inResponseTo`, it is unsolicited; other absent values are as in a valid response. */
export interface ResponseOptions {
  readonly attributes: Readonly<Record<string, readonly string[]>>;
  readonly inResponseTo?: string | undefined;
  readonly recipient?: string;
  readonly audience?: string;
  readonly issuer?: string;
  /** When the user was authenticated, in milliseconds since the epoch; by default now. */
  readonly authenticatedAt?: number;
  /** Milliseconds from now until the assertion expires. */
  readonly validFor?: number;
  readonly signedBy?: Certificate;
  readonly signs?: 'assertion' | 'response' | 'both' | 'nothing';
  /** Code of the status, for instance `Responder`. */
  readonly status?: string;
  readonly destination?: string;
  /** The certificate of the service for which the assertion is encrypted; absent: it is not encrypted. */
  readonly encryptFor?: Certificate;
}

const rsaFolder = join(import.meta.dirname, '..', '..', '..', 'test', 'fixtures', 'rsa');

/** Returns an RSA key with its self-signed certificate. The keys are stored, because making one takes long. */
export function rsaCertificate(name: 'first' | 'second' | 'third'): Certificate {
  const read = (part: string) => readFileSync(join(rsaFolder, `${name}.${part}.pem`), 'utf8');
  return { key: read('key'), cert: read('cert') };
}

/** A SAML identity provider: metadata, and signed responses. */
export class SamlIdp {
  readonly entityId: string;
  readonly certificate: Certificate;

  constructor(entityId: string, certificate: Certificate = rsaCertificate('first')) {
    this.entityId = entityId;
    this.certificate = certificate;
  }

  get metadata(): string {
    const key = this.certificate.cert.replace(/-----[^-]+-----|\s/g, '');
    return `<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="${this.entityId}"><md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"><md:KeyDescriptor use="signing"><ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data><ds:X509Certificate>${key}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor><md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="${this.entityId}/sso"/></md:IDPSSODescriptor></md:EntityDescriptor>`;
  }

  /** Reads the URL that the homeserver redirects to. @returns the SAML request as XML, its id, and the relay state */
  read(url: string): { readonly id: string; readonly relayState: string; readonly xml: string } {
    const { searchParams } = new URL(url);
    const xml = inflateRawSync(Buffer.from(searchParams.get('SAMLRequest') ?? '', 'base64')).toString();
    const id = /\bID="([^"]+)"/.exec(xml)?.[1] ?? '';
    return { id, relayState: searchParams.get('RelayState') ?? '', xml };
  }

  /** Returns a response as XML. */
  async xml(options: ResponseOptions): Promise<string> {
    const { signs = 'assertion', encryptFor } = options;
    let assertion = this.#assertion(options);
    if (signs === 'assertion' || signs === 'both')
      assertion = this.#sign(assertion, 'Assertion', options.signedBy);
    if (encryptFor !== undefined) assertion = await encrypted(assertion, encryptFor);
    const response = this.#response(assertion, options);
    return signs === 'response' || signs === 'both'
      ? this.#sign(response, 'Response', options.signedBy)
      : response;
  }

  /** Returns a response as browsers send it: its XML in base64. */
  async response(options: ResponseOptions): Promise<string> {
    return Buffer.from(await this.xml(options)).toString('base64');
  }

  #assertion({
    attributes,
    inResponseTo,
    recipient,
    audience,
    issuer,
    validFor = 60_000,
    authenticatedAt,
  }: ResponseOptions): string {
    const now = Date.now();
    const end = new Date(now + validFor).toISOString();
    const request = inResponseTo === undefined ? '' : ` InResponseTo="${inResponseTo}"`;
    const values = Object.entries(attributes).map(
      ([name, list]) =>
        `<saml:Attribute Name="${name}">${list.map((value) => `<saml:AttributeValue>${value}</saml:AttributeValue>`).join('')}</saml:Attribute>`,
    );
    return `<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_${randomUUID()}" Version="2.0" IssueInstant="${new Date(now).toISOString()}"><saml:Issuer>${issuer ?? this.entityId}</saml:Issuer><saml:Subject><saml:NameID Format="urn:oasis:names:tc:SAML:2.0:nameid-format:transient">${randomUUID()}</saml:NameID><saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml:SubjectConfirmationData NotOnOrAfter="${end}" Recipient="${recipient ?? responseUrl}"${request}/></saml:SubjectConfirmation></saml:Subject><saml:Conditions NotBefore="${new Date(Math.min(now, now + validFor) - 1000).toISOString()}" NotOnOrAfter="${end}"><saml:AudienceRestriction><saml:Audience>${audience ?? serviceEntityId}</saml:Audience></saml:AudienceRestriction></saml:Conditions><saml:AuthnStatement AuthnInstant="${new Date(authenticatedAt ?? now).toISOString()}"/><saml:AttributeStatement>${values.join('')}</saml:AttributeStatement></saml:Assertion>`;
  }

  #response(assertion: string, { inResponseTo, issuer, status, destination }: ResponseOptions): string {
    const request = inResponseTo === undefined ? '' : ` InResponseTo="${inResponseTo}"`;
    return `<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" ID="_${randomUUID()}" Version="2.0" IssueInstant="${new Date().toISOString()}" Destination="${destination ?? responseUrl}"${request}><saml:Issuer xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion">${issuer ?? this.entityId}</saml:Issuer><samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:${status ?? 'Success'}"/></samlp:Status>${assertion}</samlp:Response>`;
  }

  #sign(xml: string, element: string, { key } = this.certificate): string {
    const signature = new SignedXml({
      privateKey: key,
      signatureAlgorithm: 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
      canonicalizationAlgorithm: 'http://www.w3.org/2001/10/xml-exc-c14n#',
    });
    signature.addReference({
      xpath: `//*[local-name(.)='${element}']`,
      digestAlgorithm: 'http://www.w3.org/2001/04/xmlenc#sha256',
      transforms: [
        'http://www.w3.org/2000/09/xmldsig#enveloped-signature',
        'http://www.w3.org/2001/10/xml-exc-c14n#',
      ],
    });
    const issuer = `//*[local-name(.)='${element}']/*[local-name(.)='Issuer']`;
    signature.computeSignature(xml, { location: { reference: issuer, action: 'after' } });
    return signature.getSignedXml();
  }
}

function encrypted(assertion: string, { cert }: Certificate): Promise<string> {
  const settings = {
    rsa_pub: new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    pem: cert,
    encryptionAlgorithm: 'http://www.w3.org/2009/xmlenc11#aes256-gcm',
    keyEncryptionAlgorithm: 'http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p',
  } as const;
  return new Promise((resolve, reject) =>
    encrypt(assertion, settings, (error: Error | null, data: string) =>
      error
        ? reject(error)
        : resolve(
            `<saml:EncryptedAssertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion">${data}</saml:EncryptedAssertion>`,
          ),
    ),
  );
}
